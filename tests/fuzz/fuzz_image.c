/* Pictures: whatever the bytes, there is a picture within the limits or an error with a message; a picture gives views. */
#include "fuzz.h"

#include <stdlib.h>

#include "helper/decode.h"
#include "image/views.h"

static void make_views(const struct image *image)
{
    static const struct view_config config = {
        .tiles = true,
        .base_side = 16,
        .tile_side = 8,
        .min_tiles = 2,
        .max_tiles = 6,
        .mean = {0.5f, 0.5f, 0.5f},
        .std = {0.5f, 0.5f, 0.5f},
    };
    struct views views;
    if (views_make(&views, image->rgb, image->width, image->height, &config, NULL) == FATHOM_OK)
        views_free(&views);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct image_limits limits = {
        .max_file_bytes = 1 << 20,
        .max_pixels = 1 << 20,
        .max_side = 65500,
        .max_work_bytes = 1 << 22,
    };
    for (int mode = 0; mode < 2; mode++) {
        const struct codec_input in = {data, size, mode ? FATHOM_ALPHA_DROP : FATHOM_ALPHA_WHITE, mode, &limits};
        struct decoded picture;
        struct fathom_err err = {0};
        enum fathom_status status = picture_decode(&picture, &in, &err);
        const struct image *image = &picture.image;
        if (status != FATHOM_OK) {
            if (image->rgb || err.status != status || !err.message[0])
                abort();
            continue;
        }
        if (image->width < 1 || image->height < 1 || (size_t)image->width * (size_t)image->height > limits.max_pixels)
            abort();
        make_views(image);
        decoded_free(&picture);
    }
    return 0;
}
