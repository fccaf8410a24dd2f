#include "helper/decode.h"

#include "base/mapfile.h"
#include "document/format.h"
#include "helper/tiff.h"

#include <stdlib.h>

void decoded_free(struct decoded *picture)
{
    image_free(&picture->image);
    *picture = (struct decoded){0};
}

static enum fathom_status decode_first_page(struct decoded *out, const struct codec_input *in, struct fathom_err *err)
{
    struct tiff_pages *tiff;
    enum fathom_status status = tiff_open(&tiff, in, err);
    if (status)
        return status;
    status = tiff_page(tiff, 1, out, err);
    tiff_close(tiff);
    return status;
}

enum fathom_status picture_decode(struct decoded *out, const struct codec_input *in, struct fathom_err *err)
{
    enum fathom_status status;
    *out = (struct decoded){.orientation = 1};
    if (in->n > in->limits->max_file_bytes)
        return fail(err, FATHOM_ELIMIT, "%zu bytes, the limit is %zu", in->n, in->limits->max_file_bytes);
    switch (format_of(in->bytes, in->n)) {
    case FORMAT_PNM: status = pnm_decode(&out->image, in->bytes, in->n, in->alpha, in->limits, err); break;
    case FORMAT_PNG: status = png_decode(out, in, err); break;
    case FORMAT_JPEG: status = jpeg_decode(out, in, err); break;
    case FORMAT_WEBP: status = webp_decode(out, in, err); break;
    case FORMAT_BMP: status = bmp_decode(out, in, err); break;
    case FORMAT_GIF: status = gif_decode(out, in, err); break;
    case FORMAT_TIFF: status = decode_first_page(out, in, err); break;
    default: return format_fail(in->bytes, in->n, err);
    }
    if (status == FATHOM_OK)
        status = picture_orient(out, err);
    if (status != FATHOM_OK)
        decoded_free(out);
    return status;
}

enum fathom_status image_decode(struct image *out, const uint8_t *bytes, size_t n, enum fathom_alpha alpha,
                                const struct image_limits *limits, struct fathom_err *err)
{
    struct codec_input in = {bytes, n, alpha, true, limits};
    struct decoded picture;
    enum fathom_status status = picture_decode(&picture, &in, err);
    *out = picture.image;
    return status;
}

enum fathom_status image_load(struct image *out, const char *path, enum fathom_alpha alpha,
                              const struct image_limits *limits, struct fathom_err *err)
{
    char *bytes;
    size_t n;
    *out = (struct image){0};
    enum fathom_status status = file_read(path, limits->max_file_bytes, &bytes, &n, err);
    if (status != FATHOM_OK)
        return status;
    status = image_decode(out, (const uint8_t *)bytes, n, alpha, limits, err);
    free(bytes);
    return status == FATHOM_OK ? FATHOM_OK : fail_at(err, "'%s': ", path);
}
