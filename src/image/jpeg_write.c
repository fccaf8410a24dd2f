#include "image/jpeg_write.h"

#include "base/strbuf.h"

#include <math.h>
#include <string.h>

enum { N_AC = 162, FLUSH_BYTES = 1 << 16 };

static const uint8_t zigzag[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

/* Tables K.1 and K.2 of the standard, for quality 50. */
static const uint8_t quantizers[2][64] = {
    {16, 11,  10,  16, 24, 40, 51, 61, 12,  12,  14,  19,  26, 58, 60, 55,  14,  13,  16,  24, 40, 57,
     69, 56,  14,  17, 22, 29, 51, 87, 80,  62,  18,  22,  37, 56, 68, 109, 103, 77,  24,  35, 55, 64,
     81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98,  112, 100, 103, 99},
    {17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99,
     99, 99, 47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
     99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99},
};

/* How many codes there are of each length from 1 to 16. */
static const uint8_t dc_lengths[16] = {0, 1, 5, 1, 1, 1, 1, 1, 1},
                     ac_lengths[16] = {0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125};

/* The AC symbols (zeros before it << 4 | bits of a coefficient) that come often; the others follow in order. */
static const uint8_t frequent[] = {
    0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07, 0x22, 0x71, 0x14,
    0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52, 0xd1, 0xf0, 0x24, 0x33, 0x62, 0x72, 0x82,
};

struct code {
    uint16_t bits;
    uint8_t n;
};

struct encoder {
    fathom_write_fn *write;
    void *user;
    struct strbuf out;
    uint32_t bits; /* not in out yet, n_bits of them */
    int n_bits;
    float cosine[8][8]; /* [frequency][sample], with the normalisation */
    float divisor[2][64];
    uint8_t quantizer[2][64];
    uint8_t ac_symbols[N_AC], dc_symbols[12];
    struct code dc[12], ac[256];
    int before[3]; /* DC of the component's last block */
};

static void set_codes(struct code *codes, const uint8_t lengths[16], const uint8_t *symbols)
{
    unsigned code = 0;
    for (int n = 1; n <= 16; n++, code <<= 1)
        for (int i = 0; i < lengths[n - 1]; i++)
            codes[*symbols++] = (struct code){(uint16_t)code++, (uint8_t)n};
}

static void encoder_init(struct encoder *e)
{
    for (int u = 0; u < 8; u++)
        for (int x = 0; x < 8; x++)
            e->cosine[u][x] = cosf((float)((2 * x + 1) * u) * 0.19634954f) * (u ? 0.5f : 0.35355339f); /* pi / 16 */
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < 64; i++) {
            int q = (quantizers[t][i] * 20 + 50) / 100; /* quality 90 */
            e->quantizer[t][i] = (uint8_t)(q < 1 ? 1 : q);
            e->divisor[t][i] = 1 / (float)e->quantizer[t][i];
        }
    bool listed[256] = {false};
    size_t n = sizeof frequent;
    memcpy(e->ac_symbols, frequent, n);
    for (size_t i = 0; i < n; i++)
        listed[frequent[i]] = true;
    for (int symbol = 0; symbol < 256; symbol++) {
        int size = symbol & 15;
        bool used = size >= 1 && size <= 10;
        if (used && !listed[symbol])
            e->ac_symbols[n++] = (uint8_t)symbol;
    }
    for (uint8_t i = 0; i < 12; i++)
        e->dc_symbols[i] = i;
    set_codes(e->dc, dc_lengths, e->dc_symbols);
    set_codes(e->ac, ac_lengths, e->ac_symbols);
}

static void add_byte(struct encoder *e, unsigned byte) { strbuf_add(&e->out, &(char){(char)byte}, 1); }

static void add_u16(struct encoder *e, unsigned value)
{
    add_byte(e, value >> 8);
    add_byte(e, value);
}

static void put_bits(struct encoder *e, unsigned value, int n)
{
    e->bits = e->bits << n | (value & ((1u << n) - 1));
    for (e->n_bits += n; e->n_bits >= 8; e->n_bits -= 8) {
        unsigned byte = e->bits >> (e->n_bits - 8) & 0xff;
        add_byte(e, byte);
        if (byte == 0xff)
            add_byte(e, 0);
    }
}

static void put_code(struct encoder *e, struct code code) { put_bits(e, code.bits, code.n); }

/* The bits of a coefficient: as many as its size needs; negative ones less 1. */
static int size_of(int value)
{
    unsigned magnitude = (unsigned)(value < 0 ? -value : value);
    int n = 0;
    for (; magnitude; magnitude >>= 1)
        n++;
    return n;
}

static void put_value(struct encoder *e, int value, int size)
{
    put_bits(e, (unsigned)(value < 0 ? value - 1 : value), size);
}

static void put_block(struct encoder *e, const float samples[8][8], int component)
{
    float rows[8][8];
    int table = component > 0, quantized[64], run = 0;
    for (int y = 0; y < 8; y++)
        for (int u = 0; u < 8; u++) {
            float sum = 0;
            for (int x = 0; x < 8; x++)
                sum += e->cosine[u][x] * samples[y][x];
            rows[y][u] = sum;
        }
    for (int v = 0; v < 8; v++)
        for (int u = 0; u < 8; u++) {
            float sum = 0;
            for (int y = 0; y < 8; y++)
                sum += e->cosine[v][y] * rows[y][u];
            quantized[8 * v + u] = (int)lrintf(sum * e->divisor[table][8 * v + u]);
        }
    int dc = quantized[0], size = size_of(dc - e->before[component]);
    put_code(e, e->dc[size]);
    put_value(e, dc - e->before[component], size);
    e->before[component] = dc;
    for (int k = 1; k < 64; k++) {
        int value = quantized[zigzag[k]];
        if (value == 0) {
            run++;
            continue;
        }
        for (; run > 15; run -= 16)
            put_code(e, e->ac[0xf0]);
        size = size_of(value);
        put_code(e, e->ac[run << 4 | size]);
        put_value(e, value, size);
        run = 0;
    }
    if (run)
        put_code(e, e->ac[0]);
}

static void add_headers(struct encoder *e, int width, int height)
{
    strbuf_add(&e->out, "\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0", 20);
    for (unsigned t = 0; t < 2; t++) {
        strbuf_add(&e->out, "\xff\xdb\0\x43", 4);
        add_byte(e, t);
        for (int k = 0; k < 64; k++)
            add_byte(e, e->quantizer[t][zigzag[k]]);
    }
    strbuf_add(&e->out, "\xff\xc0\0\x11\x08", 5);
    add_u16(e, (unsigned)height);
    add_u16(e, (unsigned)width);
    strbuf_add(&e->out, "\3\1\x11\0\2\x11\1\3\x11\1", 10); /* three components, tables 0, 1 and 1 */
    strbuf_add(&e->out, "\xff\xc4", 2);
    add_u16(e, 2 + 17 + sizeof e->dc_symbols + 17 + N_AC);
    add_byte(e, 0x00);
    strbuf_add(&e->out, (const char *)dc_lengths, 16);
    strbuf_add(&e->out, (const char *)e->dc_symbols, sizeof e->dc_symbols);
    add_byte(e, 0x10);
    strbuf_add(&e->out, (const char *)ac_lengths, 16);
    strbuf_add(&e->out, (const char *)e->ac_symbols, N_AC);
    strbuf_add(&e->out, "\xff\xda\0\x0c\3\1\0\2\0\3\0\0\x3f\0", 14);
}

/* 8 x 8 pixels from (x, y), the last ones repeated beyond the edge, as luminance and two colour differences. */
static void read_pixels(const uint8_t *rgb, size_t stride, int width, int height, int x, int y, float out[3][8][8])
{
    for (int i = 0; i < 64; i++) {
        int column = x + i % 8 < width ? x + i % 8 : width - 1, row = y + i / 8 < height ? y + i / 8 : height - 1;
        const uint8_t *p = rgb + (size_t)row * stride + (size_t)column * 3;
        float r = p[0], g = p[1], b = p[2];
        out[0][i / 8][i % 8] = 0.299f * r + 0.587f * g + 0.114f * b - 128;
        out[1][i / 8][i % 8] = -0.168736f * r - 0.331264f * g + 0.5f * b;
        out[2][i / 8][i % 8] = 0.5f * r - 0.418688f * g - 0.081312f * b;
    }
}

static enum fathom_status flush(struct encoder *e, size_t least, struct fathom_err *err)
{
    if (e->out.failed)
        return fail_nomem(err, e->out.n, "a picture");
    if (e->out.n < least)
        return FATHOM_OK;
    if (!e->write(e->user, strbuf_text(&e->out), e->out.n))
        return fail(err, FATHOM_EIO, "the output cannot be written");
    strbuf_cut(&e->out, 0);
    return FATHOM_OK;
}

enum fathom_status jpeg_write(const uint8_t *rgb, size_t stride, int width, int height, fathom_write_fn *write,
                              void *user, struct fathom_err *err)
{
    struct encoder e = {.write = write, .user = user};
    enum fathom_status status = FATHOM_OK;
    if (width < 1 || height < 1 || width > 65535 || height > 65535)
        return fail(err, FATHOM_ELIMIT, "a JPEG cannot have %d x %d pixels", width, height);
    encoder_init(&e);
    add_headers(&e, width, height);
    for (int y = 0; y < height && !status; y += 8) {
        for (int x = 0; x < width; x += 8) {
            float samples[3][8][8];
            read_pixels(rgb, stride, width, height, x, y, samples);
            for (int component = 0; component < 3; component++)
                put_block(&e, samples[component], component);
        }
        status = flush(&e, FLUSH_BYTES, err);
    }
    if (!status) {
        put_bits(&e, 0x7f, 7); /* fills the last byte */
        strbuf_add(&e.out, "\xff\xd9", 2);
        status = flush(&e, 0, err);
    }
    strbuf_free(&e.out);
    return status;
}
