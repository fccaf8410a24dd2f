/* GIF: the first picture of the file, at its place on a white screen. */
#include "helper/codec.h"

#include <stdlib.h>
#include <string.h>

struct gif {
    const uint8_t *at, *end;
    uint8_t palette[256][3];
    int transparent; /* a colour's number, or -1 */
};

/* A picture on the screen. */
struct frame {
    size_t x, y, w, h;
    bool interlaced;
};

static size_t get16(const uint8_t *p) { return (size_t)p[0] | (size_t)p[1] << 8; }

static bool has(const struct gif *g, size_t n) { return (size_t)(g->end - g->at) >= n; }

static enum fathom_status fail_header(struct fathom_err *err)
{
    return fail(err, FATHOM_EFORMAT, "the GIF breaks off before its first picture");
}

static bool read_palette(struct gif *g, unsigned flags)
{
    size_t n = (size_t)2 << (flags & 7);
    if (!(flags & 0x80))
        return true;
    if (!has(g, 3 * n))
        return false;
    memcpy(g->palette, g->at, 3 * n);
    g->at += 3 * n;
    return true;
}

/* ---- blocks -------------------------------------------------------------------------------------------------- */

/* The bits of a chain of blocks of at most 255 bytes. */
struct bits {
    struct gif *gif;
    size_t left_in_block;
    uint32_t held;
    unsigned n_held;
};

static bool next_byte(struct bits *b, unsigned *out)
{
    struct gif *g = b->gif;
    if (b->left_in_block == 0) {
        if (!has(g, 1) || *g->at == 0)
            return false;
        b->left_in_block = *g->at++;
    }
    if (!has(g, 1))
        return false;
    b->left_in_block--;
    *out = *g->at++;
    return true;
}

static bool next_code(struct bits *b, unsigned n_bits, unsigned *out)
{
    while (b->n_held < n_bits) {
        unsigned byte;
        if (!next_byte(b, &byte))
            return false;
        b->held |= byte << b->n_held;
        b->n_held += 8;
    }
    *out = b->held & ((1u << n_bits) - 1);
    b->held >>= n_bits;
    b->n_held -= n_bits;
    return true;
}

/* An extension: that before a picture may name a colour as transparent; the others say nothing about pixels. */
static bool read_extension(struct gif *g)
{
    enum { GRAPHIC_CONTROL = 0xf9 };
    if (!has(g, 2))
        return false;
    bool is_control = *g->at++ == GRAPHIC_CONTROL;
    for (bool first = true; has(g, 1); first = false) {
        size_t n = *g->at++;
        if (n == 0)
            return true;
        if (!has(g, n))
            return false;
        if (is_control && first && n >= 4)
            g->transparent = g->at[0] & 1 ? g->at[3] : -1;
        g->at += n;
    }
    return false;
}

/* ---- pixels -------------------------------------------------------------------------------------------------- */

enum { MAX_BITS = 12, N_CODES = 1 << MAX_BITS };

/* A code's string is its prefix's and one more colour. */
struct table {
    uint16_t prefix[N_CODES], length[N_CODES];
    uint8_t first[N_CODES], last[N_CODES];
    unsigned n, clear;
};

static void table_clear(struct table *t, unsigned clear)
{
    for (unsigned i = 0; i < clear; i++) {
        t->first[i] = t->last[i] = (uint8_t)i;
        t->length[i] = 1;
        t->prefix[i] = 0;
    }
    t->clear = clear;
    t->n = clear + 2;
}

static void table_add(struct table *t, unsigned prefix, unsigned last)
{
    t->prefix[t->n] = (uint16_t)prefix;
    t->first[t->n] = t->first[prefix];
    t->length[t->n] = (uint16_t)(t->length[prefix] + 1);
    t->last[t->n++] = (uint8_t)last;
}

/* Writes a code's colours so that they begin at `at`, as far as there is room. */
static size_t put_string(const struct table *t, unsigned code, uint8_t *indices, size_t at, size_t n)
{
    size_t length = t->length[code];
    for (size_t i = length; i-- > 0; code = t->prefix[code])
        if (at + i < n)
            indices[at + i] = t->last[code];
    return at + length < n ? at + length : n;
}

/* Decodes at most n colours (LZW with codes of growing length) and returns how many there were. */
static size_t read_indices(struct gif *g, struct table *t, unsigned min_bits, uint8_t *indices, size_t n)
{
    struct bits bits = {.gif = g};
    unsigned clear = 1u << min_bits, n_bits = min_bits + 1, code, before = clear;
    size_t done = 0;
    table_clear(t, clear);
    while (done < n && next_code(&bits, n_bits, &code)) {
        if (code == clear + 1)
            break;
        if (code == clear) {
            table_clear(t, clear);
            n_bits = min_bits + 1;
            before = clear;
            continue;
        }
        if (before == clear) {
            if (code >= clear)
                break;
        } else {
            if (code > t->n || (code == t->n && t->n == N_CODES))
                break;
            if (t->n < N_CODES)
                table_add(t, before, code == t->n ? t->first[before] : t->first[code]);
        }
        done = put_string(t, code, indices, done, n);
        before = code;
        if (t->n == 1u << n_bits && n_bits < MAX_BITS)
            n_bits++;
    }
    return done;
}

/* The row that comes i-th in the file: interlaced are every eighth, the fourth ones between them, and so on. */
static size_t row_of(const struct frame *f, size_t i)
{
    static const struct {
        size_t first, step;
    } passes[] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}};
    for (size_t p = 0; f->interlaced && p < 4; p++) {
        size_t n = f->h > passes[p].first ? (f->h - passes[p].first + passes[p].step - 1) / passes[p].step : 0;
        if (i < n)
            return passes[p].first + i * passes[p].step;
        i -= n;
    }
    return i;
}

static void put_frame(const struct gif *g, const struct frame *f, const uint8_t *indices, struct image *out,
                      enum fathom_alpha alpha)
{
    size_t stride = (size_t)out->width * 3;
    for (size_t i = 0; i < f->h; i++) {
        uint8_t *dst = out->rgb + (f->y + row_of(f, i)) * stride + f->x * 3;
        for (size_t x = 0; x < f->w; x++, dst += 3) {
            unsigned index = indices[i * f->w + x];
            if (alpha == FATHOM_ALPHA_DROP || (int)index != g->transparent)
                memcpy(dst, g->palette[index], 3);
        }
    }
}

static enum fathom_status read_frame(struct gif *g, const struct frame *f, struct image *out,
                                     const struct codec_input *in, struct fathom_err *err)
{
    size_t n = f->w * f->h; /* it lies within the screen */
    if (!has(g, 1))
        return fail_header(err);
    unsigned min_bits = *g->at++;
    if (min_bits < 1 || min_bits > 8)
        return fail(err, FATHOM_EFORMAT, "the GIF is broken: codes of %u bits", min_bits);
    uint8_t *indices = malloc(n);
    struct table *table = malloc(sizeof *table);
    enum fathom_status status = FATHOM_OK;
    if (!indices || !table)
        status = fail_nomem(err, n + sizeof *table, "the GIF's pixels");
    else {
        size_t got = read_indices(g, table, min_bits, indices, n);
        if (got < n)
            status = fail(err, FATHOM_EFORMAT, "the GIF breaks off in row %zu of %zu", got / f->w + 1, f->h);
        else
            put_frame(g, f, indices, out, in->alpha);
    }
    free(indices);
    free(table);
    return status;
}

/* The picture's descriptor; the screen grows when the picture does not lie on it. */
static enum fathom_status read_picture(struct gif *g, size_t screen_w, size_t screen_h, struct image *out,
                                       const struct codec_input *in, struct fathom_err *err)
{
    enum { DESCRIPTOR = 9, INTERLACED = 0x40 };
    enum fathom_status status;
    if (!has(g, DESCRIPTOR))
        return fail_header(err);
    const uint8_t *p = g->at;
    struct frame f = {get16(p), get16(p + 2), get16(p + 4), get16(p + 6), p[8] & INTERLACED};
    unsigned flags = p[8];
    g->at += DESCRIPTOR;
    if (!read_palette(g, flags))
        return fail_header(err);
    if (f.w == 0 || f.h == 0)
        return fail(err, FATHOM_EFORMAT, "a GIF picture of %zu x %zu pixels", f.w, f.h);
    size_t w = f.x + f.w > screen_w ? f.x + f.w : screen_w, h = f.y + f.h > screen_h ? f.y + f.h : screen_h;
    if ((status = image_alloc(out, w, h, in->limits, err)))
        return status;
    memset(out->rgb, 255, w * h * 3);
    return read_frame(g, &f, out, in, err);
}

enum fathom_status gif_decode(struct decoded *out, const struct codec_input *in, struct fathom_err *err)
{
    enum { HEADER = 13, EXTENSION = 0x21, PICTURE = 0x2c };
    struct gif g = {.at = in->bytes, .end = in->bytes + in->n, .transparent = -1};
    if (!has(&g, HEADER))
        return fail_header(err);
    size_t w = get16(g.at + 6), h = get16(g.at + 8);
    unsigned flags = g.at[10];
    g.at += HEADER;
    if (!read_palette(&g, flags))
        return fail_header(err);
    while (has(&g, 1))
        switch (*g.at++) {
        case PICTURE: return read_picture(&g, w, h, &out->image, in, err);
        case EXTENSION:
            if (!read_extension(&g))
                return fail_header(err);
            break;
        case 0: break; /* an empty block that some writers leave */
        default: return fail(err, FATHOM_EFORMAT, "the GIF is broken before its first picture");
        }
    return fail_header(err);
}
