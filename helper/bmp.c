/* BMP: Windows' bitmaps of all depths, plain and run-length coded, and OS/2's old header. */
#include "helper/codec.h"

#include <stdlib.h>
#include <string.h>

enum compression { PLAIN = 0, RLE8 = 1, RLE4 = 2, FIELDS = 3, ALPHA_FIELDS = 6 };

struct bmp {
    const struct codec_input *in;
    size_t pixels_at; /* in the file */
    size_t w, h;
    bool top_down;
    unsigned depth;
    unsigned compression;
    uint32_t masks[4]; /* red, green, blue, alpha; of 16 and 32 bits */
    uint8_t palette[256][3];
    struct image *out;
};

static uint32_t get16(const uint8_t *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }
static uint32_t get32(const uint8_t *p) { return get16(p) | get16(p + 2) << 16; }

/* ---- header -------------------------------------------------------------------------------------------------- */

enum { FILE_HEADER = 14, OLD_HEADER = 12, HEADER = 40, HEADER_WITH_MASKS = 52, HEADER_WITH_ALPHA = 56 };

static enum fathom_status read_sizes(struct bmp *b, size_t header_bytes, struct fathom_err *err)
{
    const uint8_t *p = b->in->bytes + FILE_HEADER;
    if (header_bytes == OLD_HEADER) {
        b->w = get16(p + 4);
        b->h = get16(p + 6);
        b->depth = get16(p + 10);
        return FATHOM_OK;
    }
    int32_t w = (int32_t)get32(p + 4), h = (int32_t)get32(p + 8);
    if (w <= 0 || h == 0 || h == INT32_MIN)
        return fail(err, FATHOM_EFORMAT, "a BMP of %d x %d pixels", (int)w, (int)h);
    b->w = (size_t)w;
    b->h = (size_t)(h < 0 ? -(int64_t)h : h);
    b->top_down = h < 0;
    b->depth = get16(p + 14);
    b->compression = get32(p + 16);
    return FATHOM_OK;
}

/* How samples lie in 16 and 32 bits, and where the palette begins. */
static void read_masks(struct bmp *b, size_t header_bytes, size_t *palette_at)
{
    const uint8_t *p = b->in->bytes + FILE_HEADER;
    static const uint32_t usual16[3] = {0x7c00, 0x03e0, 0x001f}, usual32[3] = {0xff0000, 0xff00, 0xff};
    memcpy(b->masks, b->depth == 16 ? usual16 : usual32, sizeof usual16);
    *palette_at = FILE_HEADER + header_bytes;
    if (b->compression != FIELDS && b->compression != ALPHA_FIELDS)
        return;
    size_t n = b->compression == ALPHA_FIELDS || header_bytes >= HEADER_WITH_ALPHA ? 4 : 3;
    if (FILE_HEADER + HEADER + 4 * n > b->in->n)
        return;
    for (size_t i = 0; i < n; i++)
        b->masks[i] = get32(p + HEADER + 4 * i);
    if (header_bytes < HEADER_WITH_MASKS)
        *palette_at += 4 * n;
}

static void read_palette(struct bmp *b, size_t at, size_t entry_bytes)
{
    size_t n = b->depth <= 8 ? (size_t)1 << b->depth : 0;
    for (size_t i = 0; i < n && at + entry_bytes <= b->in->n; i++, at += entry_bytes)
        for (int c = 0; c < 3; c++)
            b->palette[i][c] = b->in->bytes[at + 2 - (size_t)c];
}

static bool is_supported(const struct bmp *b)
{
    switch (b->compression) {
    case PLAIN:
        return b->depth == 1 || b->depth == 4 || b->depth == 8 || b->depth == 16 || b->depth == 24 || b->depth == 32;
    case RLE8: return b->depth == 8 && !b->top_down;
    case RLE4: return b->depth == 4 && !b->top_down;
    case FIELDS:
    case ALPHA_FIELDS: return b->depth == 16 || b->depth == 32;
    default: return false;
    }
}

/* ---- pixels -------------------------------------------------------------------------------------------------- */

static uint8_t *row_of(const struct bmp *b, size_t y)
{
    return b->out->rgb + (b->top_down ? y : b->h - 1 - y) * b->w * 3;
}

static unsigned sample(uint32_t pixel, uint32_t mask)
{
    if (!mask)
        return 0;
    int shift = __builtin_ctz(mask);
    uint64_t most = mask >> shift;
    return (unsigned)(((uint64_t)((pixel & mask) >> shift) * 255 + most / 2) / most);
}

static void put_fields(const struct bmp *b, uint8_t *dst, uint32_t pixel)
{
    unsigned alpha = b->masks[3] && b->in->alpha == FATHOM_ALPHA_WHITE ? sample(pixel, b->masks[3]) : 255;
    for (int c = 0; c < 3; c++)
        dst[c] = over_white(sample(pixel, b->masks[c]), alpha);
}

static void put_row(const struct bmp *b, uint8_t *dst, const uint8_t *src)
{
    for (size_t x = 0; x < b->w; x++, dst += 3) {
        if (b->depth <= 8) {
            size_t bit = x * b->depth;
            unsigned index = src[bit / 8] >> (8 - b->depth - bit % 8) & ((1u << b->depth) - 1);
            memcpy(dst, b->palette[index], 3);
        } else if (b->depth == 24) {
            dst[0] = src[3 * x + 2];
            dst[1] = src[3 * x + 1];
            dst[2] = src[3 * x];
        } else
            put_fields(b, dst, b->depth == 16 ? get16(src + 2 * x) : get32(src + 4 * x));
    }
}

static enum fathom_status read_plain(struct bmp *b, struct fathom_err *err)
{
    size_t stride = (b->w * b->depth + 31) / 32 * 4, room = b->in->n - b->pixels_at; /* w is bounded by the limits */
    for (size_t y = 0; y < b->h; y++) {
        if (room / stride <= y)
            return fail(err, FATHOM_EFORMAT, "the BMP breaks off in row %zu of %zu", y + 1, b->h);
        put_row(b, row_of(b, y), b->in->bytes + b->pixels_at + y * stride);
    }
    return FATHOM_OK;
}

/* A pair of bytes is a run, or begins with 0 and is the end of a line (0), of the picture (1), a jump (2), or a number of
 * pixels as they are. What is jumped over has the palette's first colour. */
static enum fathom_status read_runs(struct bmp *b, struct fathom_err *err)
{
    const uint8_t *p = b->in->bytes + b->pixels_at, *end = b->in->bytes + b->in->n;
    size_t x = 0, y = 0, nibbles = b->depth == 4;
    for (size_t i = 0; i < b->w * b->h; i++)
        memcpy(b->out->rgb + 3 * i, b->palette[0], 3);
    while (end - p >= 2) {
        size_t n = p[0], value = p[1];
        bool is_run = n > 0;
        p += 2;
        if (!is_run && value == 1)
            return FATHOM_OK;
        if (!is_run && value == 0) {
            x = 0;
            y++;
            continue;
        }
        if (!is_run && value == 2) {
            if (end - p < 2)
                break;
            x += p[0];
            y += p[1];
            p += 2;
            continue;
        }
        n = is_run ? n : value;
        size_t bytes = is_run ? 0 : nibbles ? (n + 1) / 2 : n;
        if ((size_t)(end - p) < bytes)
            break;
        for (size_t i = 0; i < n && y < b->h && x < b->w; i++, x++) {
            unsigned pair = is_run ? (unsigned)value : p[nibbles ? i / 2 : i];
            memcpy(row_of(b, y) + 3 * x, b->palette[nibbles ? (i % 2 ? pair & 15 : pair >> 4) : pair], 3);
        }
        p += (bytes + 1) / 2 * 2;
        if ((size_t)(end - b->in->bytes) < (size_t)(p - b->in->bytes))
            break;
    }
    return fail(err, FATHOM_EFORMAT, "the BMP breaks off in row %zu of %zu", y < b->h ? y + 1 : b->h, b->h);
}

enum fathom_status bmp_decode(struct decoded *out, const struct codec_input *in, struct fathom_err *err)
{
    struct bmp b = {.in = in, .out = &out->image};
    size_t header_bytes, palette_at;
    enum fathom_status status;

    if (in->n < FILE_HEADER + OLD_HEADER)
        return fail(err, FATHOM_EFORMAT, "the BMP breaks off in its header, after %zu bytes", in->n);
    header_bytes = get32(in->bytes + FILE_HEADER);
    b.pixels_at = get32(in->bytes + 10);
    if (header_bytes != OLD_HEADER && (header_bytes < HEADER || header_bytes > 1024))
        return fail(err, FATHOM_EUNSUPPORTED, "a BMP with a header of %zu bytes is not supported", header_bytes);
    if (in->n < FILE_HEADER + header_bytes || b.pixels_at > in->n)
        return fail(err, FATHOM_EFORMAT, "the BMP breaks off in its header, after %zu bytes", in->n);
    if ((status = read_sizes(&b, header_bytes, err)))
        return status;
    if (!is_supported(&b))
        return fail(err, FATHOM_EUNSUPPORTED, "a BMP of %u bits and compression %u is not supported", b.depth,
                    b.compression);
    read_masks(&b, header_bytes, &palette_at);
    read_palette(&b, palette_at, header_bytes == OLD_HEADER ? 3 : 4);
    if ((status = image_alloc(&out->image, b.w, b.h, in->limits, err)))
        return status;
    if (header_bytes >= HEADER) {
        out->dpi_x = get32(in->bytes + FILE_HEADER + 24) * 0.0254;
        out->dpi_y = get32(in->bytes + FILE_HEADER + 28) * 0.0254;
    }
    return b.compression == RLE8 || b.compression == RLE4 ? read_runs(&b, err) : read_plain(&b, err);
}
