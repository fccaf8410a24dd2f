/* PBM, PGM and PPM, plain (P1 P2 P3) and binary (P4 P5 P6). */
#include "image/image.h"

#include "base/checked.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct pnm {
    const uint8_t *at, *end;
    bool plain;
    size_t n_channels; /* 1 or 3                                    */
    unsigned max;      /* 1..65535; 1 for the bilevel formats       */
    uint8_t *to_u8;    /* [max + 1]: sample -> byte, NULL for bilevel */
};

static bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* A comment runs to the end of its line and may stand wherever white space may. */
static void skip_space(struct pnm *p)
{
    while (p->at < p->end) {
        if (*p->at == '#')
            while (p->at < p->end && *p->at != '\n' && *p->at != '\r')
                p->at++;
        else if (is_space(*p->at))
            p->at++;
        else
            return;
    }
}

/* A decimal number, at most `max`. */
static enum fathom_status get_number(struct pnm *p, const char *what, unsigned max, unsigned *out,
                                     struct fathom_err *err)
{
    unsigned value = 0;
    skip_space(p);
    if (p->at == p->end)
        return fail(err, FATHOM_EFORMAT, "the PNM picture breaks off before its %s", what);
    if (*p->at < '0' || *p->at > '9')
        return fail(err, FATHOM_EFORMAT, "PNM: the %s is not a number", what);
    for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++) {
        value = value * 10 + (*p->at - '0'); /* max is far below a tenth of the type's range */
        if (value > max)
            return fail(err, FATHOM_EFORMAT, "PNM: the %s is greater than %u", what, max);
    }
    *out = value;
    return FATHOM_OK;
}

/* Samples are scaled to bytes as Pillow rounds (half to even); its greys of more than 8 bits become 16-bit numbers, which
 * saturate in RGB. */
static enum fathom_status make_table(struct pnm *p, enum fathom_alpha alpha, struct fathom_err *err)
{
    size_t n = (size_t)p->max + 1;
    p->to_u8 = malloc(n);
    if (!p->to_u8)
        return fail_nomem(err, n, "a table of samples");
    double full = alpha == FATHOM_ALPHA_DROP && p->n_channels == 1 && p->max > 255 ? 65535 : 255;
    for (unsigned v = 0; v <= p->max; v++)
        p->to_u8[v] = (uint8_t)fmin(rint((double)v / p->max * full), 255);
    return FATHOM_OK;
}

static enum fathom_status fail_short(size_t row, size_t n_rows, struct fathom_err *err)
{
    return fail(err, FATHOM_EFORMAT, "the PNM picture breaks off in row %zu of %zu", row + 1, n_rows);
}

/* The next sample of a plain picture or of a binary one; the bytes of a binary one are known to be there. */
static enum fathom_status get_sample(struct pnm *p, unsigned *out, struct fathom_err *err)
{
    if (p->plain)
        return get_number(p, "sample", p->max, out, err);
    *out = *p->at++;
    if (p->max > 255)
        *out = *out << 8 | *p->at++;
    if (*out > p->max)
        return fail(err, FATHOM_EFORMAT, "PNM: the sample is greater than %u", p->max);
    return FATHOM_OK;
}

static enum fathom_status read_samples(struct pnm *p, struct image *out, struct fathom_err *err)
{
    size_t w = (size_t)out->width, h = (size_t)out->height;
    uint8_t *dst = out->rgb;
    for (size_t y = 0; y < h; y++)
        for (size_t i = 0; i < w * p->n_channels; i++) {
            unsigned sample = 0;
            if (p->plain) {
                skip_space(p);
                if (p->at == p->end)
                    return fail_short(y, h, err);
            }
            enum fathom_status status = get_sample(p, &sample, err);
            if (status != FATHOM_OK)
                return status;
            if (p->n_channels == 1) {
                memset(dst, p->to_u8[sample], 3);
                dst += 3;
            } else
                *dst++ = p->to_u8[sample];
        }
    return FATHOM_OK;
}

/* 1 is black. Plain: one character a pixel, white space optional. Binary: 8 pixels a byte, rows start on a byte. */
static enum fathom_status read_bits(struct pnm *p, struct image *out, struct fathom_err *err)
{
    size_t w = (size_t)out->width, h = (size_t)out->height;
    uint8_t *dst = out->rgb;
    for (size_t y = 0; y < h; y++)
        for (size_t x = 0; x < w; x++, dst += 3) {
            unsigned bit;
            if (p->plain) {
                skip_space(p);
                if (p->at == p->end)
                    return fail_short(y, h, err);
                bit = *p->at++ - (unsigned)'0';
                if (bit > 1)
                    return fail(err, FATHOM_EFORMAT, "PNM: row %zu holds something other than 0 and 1", y + 1);
            } else
                bit = p->at[y * ((w + 7) / 8) + x / 8] >> (7 - x % 8) & 1;
            memset(dst, bit ? 0 : 255, 3);
        }
    return FATHOM_OK;
}

/* Refuses a header whose pixels cannot lie in the bytes that follow, before they are allocated. */
static enum fathom_status check_bytes(const struct pnm *p, size_t w, size_t h, bool bilevel, struct fathom_err *err)
{
    size_t row = w * p->n_channels; /* w is at most nine digits */
    if (bilevel)
        row = p->plain ? w : (w + 7) / 8;
    else if (p->plain || p->max > 255)
        row *= 2; /* plain: a digit and a space, but for the very last */
    size_t room = (size_t)(p->end - p->at) + (p->plain && !bilevel);
    return room / row < h ? fail_short(room / row, h, err) : FATHOM_OK;
}

static enum fathom_status read_picture(struct pnm *p, struct image *out, bool bilevel, enum fathom_alpha alpha,
                                       const struct image_limits *limits, struct fathom_err *err)
{
    enum { MAX_SIZE = 100 * 1000 * 1000 }; /* beyond any limit, and safe to multiply */
    unsigned w = 0, h = 0;
    enum fathom_status status = get_number(p, "width", MAX_SIZE, &w, err);
    if (status == FATHOM_OK)
        status = get_number(p, "height", MAX_SIZE, &h, err);
    if (status == FATHOM_OK && !bilevel)
        status = get_number(p, "maxval", 65535, &p->max, err);
    if (status != FATHOM_OK)
        return status;
    if (p->max == 0)
        return fail(err, FATHOM_EFORMAT, "PNM: the maxval is 0");
    if (p->at == p->end || !is_space(*p->at))
        return fail(err, FATHOM_EFORMAT, "PNM: the header does not end in white space");
    p->at++;
    if (w > 0 && h > 0 && w <= (unsigned)limits->max_side && h <= (unsigned)limits->max_side)
        status = check_bytes(p, w, h, bilevel, err);
    if (status == FATHOM_OK)
        status = image_alloc(out, w, h, limits, err);
    if (status == FATHOM_OK && !bilevel)
        status = make_table(p, alpha, err);
    if (status != FATHOM_OK)
        return status;
    return bilevel ? read_bits(p, out, err) : read_samples(p, out, err);
}

enum fathom_status pnm_decode(struct image *out, const uint8_t *bytes, size_t n, enum fathom_alpha alpha,
                              const struct image_limits *limits, struct fathom_err *err)
{
    char kind = (char)bytes[1];
    struct pnm p = {
        .at = bytes + 2,
        .end = bytes + n,
        .plain = kind <= '3',
        .n_channels = kind == '3' || kind == '6' ? 3 : 1,
        .max = 1,
    };
    *out = (struct image){0};
    enum fathom_status status = read_picture(&p, out, kind == '1' || kind == '4', alpha, limits, err);
    free(p.to_u8);
    if (status)
        image_free(out);
    return status;
}
