#include "image/image.h"

#include "base/checked.h"
#include "base/mapfile.h"
#include "image/codec.h"

#include <stdlib.h>
#include <string.h>

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

enum fathom_status codec_alloc(struct image *out, size_t width, size_t height, const struct image_limits *limits,
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

/* ---- formats ----------------------------------------------------------------------------------------------- */

enum format { PNG, JPEG, PNM, FOREIGN, UNKNOWN };

static bool has(const struct codec_input *in, size_t at, const char *signature, size_t n)
{
    return in->n >= at + n && memcmp(in->bytes + at, signature, n) == 0;
}

/* Formats that are recognised only to be named. */
static const char *foreign_name(const struct codec_input *in)
{
    static const struct {
        size_t at, n;
        const char *signature, *name;
    } foreign[] = {
        {0, 4, "GIF8", "GIF"},
        {0, 4, "II*\0", "TIFF"},
        {0, 4, "MM\0*", "TIFF"},
        {8, 4, "WEBP", "WebP"},
        {4, 4, "ftyp", "HEIF or AVIF"},
        {0, 8, "\0\0\0\014JXL ", "JPEG XL"},
        {0, 2, "\xff\n", "JPEG XL"},
        {0, 8, "\0\0\0\014jP  ", "JPEG 2000"},
        {0, 4, "\xff\x4f\xff\x51", "JPEG 2000"},
        {0, 3, "P7\n", "PAM"},
        {0, 2, "BM", "BMP"},
        {0, 5, "%PDF-", "PDF"},
    };
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (has(in, foreign[i].at, foreign[i].signature, foreign[i].n))
            return foreign[i].name;
    return NULL;
}

static enum format sniff(const struct codec_input *in)
{
    if (has(in, 0, "\x89PNG\r\n\x1a\n", 8))
        return PNG;
    if (has(in, 0, "\xff\xd8\xff", 3))
        return JPEG;
    if (in->n >= 3 && in->bytes[0] == 'P' && in->bytes[1] >= '1' && in->bytes[1] <= '6' &&
        (in->bytes[2] == '#' || in->bytes[2] == ' ' || (in->bytes[2] >= '\t' && in->bytes[2] <= '\r')))
        return PNM;
    return foreign_name(in) ? FOREIGN : UNKNOWN;
}

static enum fathom_status fail_unknown(const struct codec_input *in, struct fathom_err *err)
{
    char hex[3 * 8 + 1] = "";
    for (size_t i = 0; i < in->n && i < 8; i++) {
        static const char digits[] = "0123456789abcdef";
        char byte[] = {' ', digits[in->bytes[i] >> 4], digits[in->bytes[i] & 15]};
        memcpy(hex + 3 * i, byte, 3);
    }
    return fail(err, FATHOM_EFORMAT, "not a PNG, JPEG or PPM picture: begins with%s", hex);
}

enum fathom_status image_decode(struct image *out, const uint8_t *bytes, size_t n, enum fathom_alpha alpha,
                                const struct image_limits *limits, struct fathom_err *err)
{
    struct codec_input in = {bytes, n, alpha, limits};
    enum fathom_status status;
    int orientation = 1;
    *out = (struct image){0};
    if (n == 0)
        return fail(err, FATHOM_EFORMAT, "an empty file");
    if (n > limits->max_file_bytes)
        return fail(err, FATHOM_ELIMIT, "%zu bytes, the limit is %zu", n, limits->max_file_bytes);
    switch (sniff(&in)) {
    case PNG: status = png_decode(out, &orientation, &in, err); break;
    case JPEG: status = jpeg_decode(out, &orientation, &in, err); break;
    case PNM: status = pnm_decode(out, &in, err); break;
    case FOREIGN: return fail(err, FATHOM_EUNSUPPORTED, "%s is not supported", foreign_name(&in));
    default: return fail_unknown(&in, err);
    }
    if (status == FATHOM_OK)
        status = image_orient(out, orientation, err);
    if (status != FATHOM_OK)
        image_free(out);
    return status;
}

enum fathom_status image_load(struct image *out, const char *path, enum fathom_alpha alpha,
                              const struct image_limits *limits, struct fathom_err *err)
{
    char *bytes;
    size_t n;
    *out = (struct image){0};
    /* Read, not mapped: a file that shrinks meanwhile must not become a SIGBUS. */
    enum fathom_status status = file_read(path, limits->max_file_bytes, &bytes, &n, err);
    if (status != FATHOM_OK)
        return status;
    status = image_decode(out, (const uint8_t *)bytes, n, alpha, limits, err);
    free(bytes);
    return status == FATHOM_OK ? FATHOM_OK : fail_at(err, "'%s': ", path);
}
