/* Small picture files made by hand, and what every picture test asks of the decoder. */
#ifndef FATHOM_TESTS_PICTURE_H
#define FATHOM_TESTS_PICTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "helper/decode.h" /* before cmocka.h, which has a macro fail() */

#include <cmocka.h>

/* ---- bytes --------------------------------------------------------------------------------------------------- */

struct blob {
    uint8_t *data;
    size_t n;
};

/* The block has room for n rounded up to the next whole step. */
static inline void put(struct blob *b, const void *bytes, size_t n)
{
    const size_t step = 1 << 16;
    if (!b->data || b->n / step != (b->n + n) / step) {
        b->data = realloc(b->data, ((b->n + n) / step + 1) * step);
        assert_non_null(b->data);
    }
    if (n)
        memcpy(b->data + b->n, bytes, n);
    b->n += n;
}

static inline void put8(struct blob *b, unsigned v)
{
    uint8_t byte = (uint8_t)v;
    put(b, &byte, 1);
}

static inline void put16(struct blob *b, unsigned v) /* big endian */
{
    put8(b, v >> 8);
    put8(b, v & 255);
}

static inline void put32(struct blob *b, uint32_t v)
{
    put16(b, v >> 16);
    put16(b, v & 0xffff);
}

static inline void blob_free(struct blob *b)
{
    free(b->data);
    *b = (struct blob){0};
}

static inline struct blob blob_read(const char *path)
{
    struct blob b = {0};
    uint8_t part[4096];
    size_t n;
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("cannot open %s", path);
    while ((n = fread(part, 1, sizeof part, file)) > 0)
        put(&b, part, n);
    fclose(file);
    return b;
}

/* An EXIF block with one entry before the orientation. */
static inline struct blob exif_block(bool big_endian, unsigned orientation)
{
    static const uint16_t fields[] = {42, 0, 8, 2, 0x010f, 2, 0, 1, 'f', 0, 0x0112, 3, 0, 1};
    struct blob b = {0};
    put(&b, big_endian ? "MM" : "II", 2);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        /* 32-bit fields are (high, low) pairs: swap them for little endian */
        bool pair = i == 1 || i == 6 || i == 12, second = i == 2 || i == 7 || i == 13;
        unsigned v = big_endian ? fields[i] : fields[pair ? i + 1 : second ? i - 1 : i];
        put16(&b, big_endian ? v : (v & 255) << 8 | v >> 8);
    }
    put16(&b, big_endian ? orientation : (orientation & 255) << 8 | orientation >> 8);
    put16(&b, 0);
    put32(&b, 0);
    return b;
}

/* ---- a PNG writer: stored deflate blocks, filter 0 ----------------------------------------------------------- */

struct png_spec {
    int w, h, type, depth;
    bool interlaced;
    const uint16_t *samples; /* [h, w, channels of the type] */
    struct blob palette, trns, exif;
};

static inline int png_channels(int type) { return type == 2 ? 3 : type == 4 ? 2 : type == 6 ? 4 : 1; }

static inline void put_chunk(struct blob *out, const char *name, const void *data, size_t n)
{
    put32(out, (uint32_t)n);
    size_t start = out->n;
    put(out, name, 4);
    put(out, data, n);
    uint32_t crc = 0xffffffff;
    for (size_t i = start; i < out->n; i++) {
        crc ^= out->data[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    put32(out, ~crc);
}

static inline void put_png_row(struct blob *raw, const struct png_spec *p, int y, int x0, int dx)
{
    int channels = png_channels(p->type), n_bits = 0;
    unsigned bits = 0;
    put8(raw, 0);
    for (int x = x0; x < p->w; x += dx)
        for (int c = 0; c < channels; c++) {
            unsigned v = p->samples[(y * p->w + x) * channels + c];
            if (p->depth == 16) {
                put16(raw, v);
                continue;
            }
            bits = bits << p->depth | v;
            n_bits += p->depth;
            if (n_bits == 8) {
                put8(raw, bits);
                bits = 0;
                n_bits = 0;
            }
        }
    if (n_bits)
        put8(raw, bits << (8 - n_bits));
}

static inline struct blob zlib_stored(const struct blob *raw)
{
    struct blob z = {0};
    uint32_t a = 1, b = 0;
    put16(&z, 0x7801);
    for (size_t at = 0; at < raw->n; at += 65535) {
        unsigned n = (unsigned)(raw->n - at < 65535 ? raw->n - at : 65535);
        put8(&z, at + n == raw->n);
        put16(&z, (n & 255) << 8 | n >> 8);
        put16(&z, (~n & 255) << 8 | (~n >> 8 & 255));
        put(&z, raw->data + at, n);
    }
    for (size_t i = 0; i < raw->n; i++) {
        a = (a + raw->data[i]) % 65521;
        b = (b + a) % 65521;
    }
    put32(&z, b << 16 | a);
    return z;
}

static inline struct blob png_file(const struct png_spec *p)
{
    static const int passes[7][4] = {/* x0, y0, dx, dy */
                                     {0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                     {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    struct blob out = {0}, header = {0}, raw = {0};
    put(&out, "\x89PNG\r\n\x1a\n", 8);
    put32(&header, (uint32_t)p->w);
    put32(&header, (uint32_t)p->h);
    put8(&header, (unsigned)p->depth);
    put8(&header, (unsigned)p->type);
    put16(&header, 0);
    put8(&header, p->interlaced);
    put_chunk(&out, "IHDR", header.data, header.n);
    if (p->palette.n)
        put_chunk(&out, "PLTE", p->palette.data, p->palette.n);
    if (p->trns.n)
        put_chunk(&out, "tRNS", p->trns.data, p->trns.n);
    if (p->exif.n)
        put_chunk(&out, "eXIf", p->exif.data, p->exif.n);
    if (!p->interlaced)
        for (int y = 0; y < p->h; y++)
            put_png_row(&raw, p, y, 0, 1);
    for (int i = 0; p->interlaced && i < 7; i++)
        for (int y = passes[i][1]; y < p->h && passes[i][0] < p->w; y += passes[i][3])
            put_png_row(&raw, p, y, passes[i][0], passes[i][2]);
    struct blob z = zlib_stored(&raw);
    put_chunk(&out, "IDAT", z.data, z.n);
    put_chunk(&out, "IEND", NULL, 0);
    blob_free(&header);
    blob_free(&raw);
    blob_free(&z);
    return out;
}

/* An 8-bit RGB picture of one colour. */
static inline struct blob png_plain(int w, int h, unsigned value)
{
    size_t n = (size_t)w * (size_t)h * 3;
    uint16_t *samples = malloc(n * sizeof *samples);
    assert_non_null(samples);
    for (size_t i = 0; i < n; i++)
        samples[i] = (uint16_t)value;
    struct blob file = png_file(&(struct png_spec){.w = w, .h = h, .type = 2, .depth = 8, .samples = samples});
    free(samples);
    return file;
}

/* ---- asking ---------------------------------------------------------------------------------------------------- */

/* Decodes from a block of exactly n bytes, so that a sanitizer sees reading past it. A failure must leave a message and no
 * picture. */
static inline enum fathom_status decode_n(struct image *out, const struct blob *file, size_t n, enum fathom_alpha alpha,
                                          const struct image_limits *limits, struct fathom_err *err)
{
    uint8_t *exact = malloc(n ? n : 1);
    assert_non_null(exact);
    if (n)
        memcpy(exact, file->data, n);
    *err = (struct fathom_err){0};
    enum fathom_status status = image_decode(out, exact, n, alpha, limits, err);
    free(exact);
    if (status != FATHOM_OK) {
        assert_int_equal(err->status, status);
        assert_true(strlen(err->message) > 0);
        assert_null(out->rgb);
    }
    return status;
}

static inline struct image decode_ok(const struct blob *file, enum fathom_alpha alpha)
{
    struct image image;
    struct fathom_err err;
    if (decode_n(&image, file, file->n, alpha, &image_default_limits, &err) != FATHOM_OK)
        fail_msg("%s", err.message);
    return image;
}

static inline void assert_refused(const struct blob *file, const struct image_limits *limits, enum fathom_status status,
                                  const char *part)
{
    struct image image;
    struct fathom_err err;
    enum fathom_status got = decode_n(&image, file, file->n, FATHOM_ALPHA_WHITE, limits, &err);
    image_free(&image);
    if (got != status || !strstr(err.message, part))
        fail_msg("status %d, '%s'; expected %d and '%s'", got, err.message, status, part);
}

/* Every beginning of a file but the whole is an error. */
static inline void assert_truncations_fail(const struct blob *file)
{
    for (size_t n = 0; n < file->n; n++) {
        struct image image;
        struct fathom_err err;
        if (decode_n(&image, file, n, FATHOM_ALPHA_WHITE, &image_default_limits, &err) == FATHOM_OK)
            fail_msg("the first %zu of %zu bytes gave a picture", n, file->n);
    }
}

/* With each byte changed in turn, nothing worse than an error happens. */
static inline void assert_survives_damage(const struct blob *file)
{
    static const uint8_t flips[] = {0xff, 0x01, 0x80};
    static const struct image_limits limits = {1 << 20, 1 << 20, 65500, 1 << 22};
    for (size_t at = 0; at < file->n; at++)
        for (size_t i = 0; i < sizeof flips; i++) {
            struct image image;
            struct fathom_err err;
            file->data[at] ^= flips[i];
            decode_n(&image, file, file->n, FATHOM_ALPHA_WHITE, &limits, &err);
            image_free(&image);
            file->data[at] ^= flips[i];
        }
}

/* Skips the calling test in a build without the format's library. */
static inline void need_format(const struct blob *file)
{
    struct image image;
    struct fathom_err err;
    enum fathom_status status = decode_n(&image, file, file->n, FATHOM_ALPHA_WHITE, &image_default_limits, &err);
    image_free(&image);
    if (status == FATHOM_EUNSUPPORTED) {
        assert_non_null(strstr(err.message, "built without"));
        skip();
    }
}

#endif
