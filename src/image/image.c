#include "image/image.h"

#include "base/checked.h"

#include <stdlib.h>

const struct image_limits image_default_limits = {
    .max_file_bytes = (size_t)512 << 20,
    .max_pixels = 178956970,
    .max_side = 65500,
    .max_work_bytes = (size_t)1 << 30,
};

void image_free(struct image *image)
{
    free(image->rgb);
    *image = (struct image){0};
}

enum fathom_status image_alloc(struct image *out, size_t width, size_t height, const struct image_limits *limits,
                               struct fathom_err *err)
{
    size_t n_pixels, bytes, max_side = limits->max_side > 0 ? (size_t)limits->max_side : 0;
    if (width == 0 || height == 0)
        return fail(err, FATHOM_EFORMAT, "a picture of %zu x %zu pixels", width, height);
    if (width > max_side || height > max_side)
        return fail(err, FATHOM_ELIMIT, "a picture of %zu x %zu pixels, the limit is %d a side", width, height,
                    limits->max_side);
    if (!size_mul(width, height, &n_pixels) || n_pixels > limits->max_pixels)
        return fail(err, FATHOM_ELIMIT, "a picture of %zu x %zu pixels, the limit is %zu in all", width, height,
                    limits->max_pixels);
    if (!size_mul(n_pixels, 3, &bytes))
        return fail(err, FATHOM_ELIMIT, "a picture of %zu x %zu pixels is too large for this machine", width, height);
    out->rgb = malloc(bytes);
    if (!out->rgb)
        return fail_nomem(err, bytes, "pixels");
    out->width = (int)width;
    out->height = (int)height;
    return FATHOM_OK;
}
