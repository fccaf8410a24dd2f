#include "image/png_write.h"

#include "base/checked.h"
#include "base/flate.h"

#include <stdlib.h>
#include <string.h>

bool rgb_is_grey(const uint8_t *rgb, int width, int height)
{
    const uint8_t *end = rgb + (size_t)width * (size_t)height * 3;
    for (; rgb < end; rgb += 3)
        if (rgb[0] != rgb[1] || rgb[0] != rgb[2])
            return false;
    return true;
}

static uint8_t paeth(int left, int up, int corner)
{
    int p = left + up - corner, by_left = abs(p - left), by_up = abs(p - up), by_corner = abs(p - corner);
    return (uint8_t)(by_left <= by_up && by_left <= by_corner ? left : by_up <= by_corner ? up : corner);
}

/* Filters none, sub, up and Paeth of one row of n bytes; step bytes a pixel. out: the filter's number and the row. */
static void filter_row(int filter, const uint8_t *row, const uint8_t *above, size_t n, size_t step, uint8_t *out)
{
    *out++ = (uint8_t)filter;
    for (size_t i = 0; i < n; i++) {
        uint8_t left = i < step ? 0 : row[i - step], corner = i < step ? 0 : above[i - step];
        uint8_t guess = filter == 1 ? left : filter == 2 ? above[i] : filter == 4 ? paeth(left, above[i], corner) : 0;
        out[i] = (uint8_t)(row[i] - guess);
    }
}

/* The sum of the bytes as signed numbers: the less, the better a row compresses. */
static uint64_t weight(const uint8_t *bytes, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += bytes[i] < 128 ? bytes[i] : 256u - bytes[i];
    return sum;
}

static const uint8_t *best_row(const uint8_t *row, const uint8_t *above, size_t n, size_t step, uint8_t *tries)
{
    static const int filters[] = {0, 1, 2, 4};
    const uint8_t *best = tries;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < 4; i++) {
        uint8_t *out = tries + i * (n + 1);
        filter_row(filters[i], row, above, n, step, out);
        uint64_t w = weight(out + 1, n);
        if (w < least) {
            least = w;
            best = out;
        }
    }
    return best;
}

static void copy_row(uint8_t *to, const uint8_t *rgb, int width, bool grey)
{
    if (!grey)
        memcpy(to, rgb, (size_t)width * 3);
    for (int x = 0; x < width && grey; x++)
        to[x] = rgb[3 * x];
}

enum fathom_status png_rows_write(const uint8_t *rgb, int width, int height, bool grey, fathom_write_fn *write,
                                  void *user, struct fathom_err *err)
{
    size_t step = grey ? 1 : 3, n = (size_t)width * step;
    uint8_t *rows = calloc(6, n + 1); /* the row above, this one, and four tries of it */
    struct flate *f = NULL;
    enum fathom_status status = rows ? flate_open(&f, write, user, err) : fail_nomem(err, 6 * (n + 1), "a picture");
    for (int y = 0; y < height && !status; y++) {
        uint8_t *above = rows + (y & 1) * n, *row = rows + (~y & 1) * n;
        copy_row(row, rgb + (size_t)y * (size_t)width * 3, width, grey);
        status = flate_write(f, best_row(row, above, n, step, rows + 2 * n), n + 1, err);
    }
    free(rows);
    if (status)
        flate_discard(f);
    else
        status = flate_close(f, err);
    return status;
}

/* ---- chunks -------------------------------------------------------------------------------------------------- */

struct png_sink {
    fathom_write_fn *write;
    void *user;
    uint32_t crc_of[256];
};

static uint32_t crc(const struct png_sink *s, uint32_t sum, const void *bytes, size_t n)
{
    for (const uint8_t *b = bytes; n > 0; b++, n--)
        sum = s->crc_of[(sum ^ *b) & 0xff] ^ sum >> 8;
    return sum;
}

static void put_u32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

static bool write_chunk(const struct png_sink *s, const char *type, const void *bytes, size_t n)
{
    uint8_t head[8], sum[4];
    put_u32(head, (uint32_t)n);
    memcpy(head + 4, type, 4);
    put_u32(sum, ~crc(s, crc(s, UINT32_MAX, type, 4), bytes, n));
    return s->write(s->user, (const char *)head, 8) && (n == 0 || s->write(s->user, bytes, n)) &&
           s->write(s->user, (const char *)sum, 4);
}

static bool write_idat(void *user, const char *bytes, size_t n) { return write_chunk(user, "IDAT", bytes, n); }

enum fathom_status png_write(const uint8_t *rgb, int width, int height, fathom_write_fn *write, void *user,
                             struct fathom_err *err)
{
    struct png_sink sink = {.write = write, .user = user};
    uint8_t header[13] = {[8] = 8, [9] = 2}; /* bits a sample, RGB */
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t sum = i;
        for (int bit = 0; bit < 8; bit++)
            sum = sum & 1 ? 0xedb88320u ^ sum >> 1 : sum >> 1;
        sink.crc_of[i] = sum;
    }
    put_u32(header, (uint32_t)width);
    put_u32(header + 4, (uint32_t)height);
    if (!write(user, "\x89PNG\r\n\x1a\n", 8) || !write_chunk(&sink, "IHDR", header, sizeof header))
        return fail(err, FATHOM_EIO, "the output cannot be written");
    enum fathom_status status = png_rows_write(rgb, width, height, false, write_idat, &sink, err);
    if (!status && !write_chunk(&sink, "IEND", NULL, 0))
        status = fail(err, FATHOM_EIO, "the output cannot be written");
    return status;
}
