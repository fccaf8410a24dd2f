#include "base/flate.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 65535 };

static enum fathom_status send(fathom_write_fn *write, void *user, const void *bytes, size_t n, struct fathom_err *err)
{
    if (n && !write(user, bytes, n))
        return fail(err, FATHOM_EIO, "the output cannot be written");
    return FATHOM_OK;
}

#ifdef FATHOM_ZLIB
#include <zlib.h>

struct flate {
    fathom_write_fn *write;
    void *user;
    z_stream stream;
    uint8_t out[PIECE];
};

enum fathom_status flate_open(struct flate **out, fathom_write_fn *write, void *user, struct fathom_err *err)
{
    struct flate *f = *out = calloc(1, sizeof *f);
    /* On pages 6 takes twice as long as 4 for a twentieth less. */
    if (!f || deflateInit(&f->stream, 4) != Z_OK) {
        free(f);
        *out = NULL;
        return fail_nomem(err, sizeof *f, "compression");
    }
    f->write = write;
    f->user = user;
    return FATHOM_OK;
}

static enum fathom_status run(struct flate *f, const void *bytes, size_t n, int flush, struct fathom_err *err)
{
    enum fathom_status status = FATHOM_OK;
    f->stream.next_in = (Bytef *)bytes; /* never written to */
    do {
        if (f->stream.avail_in == 0) { /* zlib counts in unsigned int */
            size_t some = n < (1u << 30) ? n : 1u << 30;
            f->stream.avail_in = (uInt)some;
            n -= some;
        }
        f->stream.next_out = f->out;
        f->stream.avail_out = sizeof f->out;
        deflate(&f->stream, n ? Z_NO_FLUSH : flush);
        status = send(f->write, f->user, f->out, sizeof f->out - f->stream.avail_out, err);
    } while (!status && (n || f->stream.avail_in || f->stream.avail_out == 0));
    return status;
}

enum fathom_status flate_write(struct flate *f, const void *bytes, size_t n, struct fathom_err *err)
{
    return run(f, bytes, n, Z_NO_FLUSH, err);
}

enum fathom_status flate_close(struct flate *f, struct fathom_err *err)
{
    enum fathom_status status = run(f, NULL, 0, Z_FINISH, err);
    flate_discard(f);
    return status;
}

void flate_discard(struct flate *f)
{
    if (f)
        deflateEnd(&f->stream);
    free(f);
}

#else

struct flate {
    fathom_write_fn *write;
    void *user;
    uint32_t a, b; /* Adler-32 */
    size_t n;
    uint8_t block[PIECE]; /* gathered, n bytes */
};

enum fathom_status flate_open(struct flate **out, fathom_write_fn *write, void *user, struct fathom_err *err)
{
    struct flate *f = *out = calloc(1, sizeof *f);
    if (!f)
        return fail_nomem(err, sizeof *f, "compression");
    f->write = write;
    f->user = user;
    f->a = 1;
    enum fathom_status status = send(write, user, "\x78\x01", 2, err);
    if (status) {
        free(f);
        *out = NULL;
    }
    return status;
}

static enum fathom_status send_block(struct flate *f, bool last, struct fathom_err *err)
{
    const uint8_t head[5] = {last, (uint8_t)f->n, (uint8_t)(f->n >> 8), (uint8_t)~f->n, (uint8_t)(~f->n >> 8)};
    enum fathom_status status = send(f->write, f->user, head, sizeof head, err);
    if (!status)
        status = send(f->write, f->user, f->block, f->n, err);
    f->n = 0;
    return status;
}

enum fathom_status flate_write(struct flate *f, const void *bytes, size_t n, struct fathom_err *err)
{
    const uint8_t *from = bytes;
    for (size_t i = 0; i < n; i++) {
        if (f->n == PIECE) {
            enum fathom_status status = send_block(f, false, err);
            if (status)
                return status;
        }
        f->block[f->n++] = from[i];
        f->a = (f->a + from[i]) % 65521;
        f->b = (f->b + f->a) % 65521;
    }
    return FATHOM_OK;
}

enum fathom_status flate_close(struct flate *f, struct fathom_err *err)
{
    const uint8_t sum[4] = {(uint8_t)(f->b >> 8), (uint8_t)f->b, (uint8_t)(f->a >> 8), (uint8_t)f->a};
    enum fathom_status status = send_block(f, true, err);
    if (!status)
        status = send(f->write, f->user, sum, sizeof sum, err);
    flate_discard(f);
    return status;
}

void flate_discard(struct flate *f) { free(f); }
#endif
