/* Compressed data in zlib's format (RFC 1950), through zlib or, in a build without it, stored as it is: larger, and as
 * valid. */
#ifndef FATHOM_BASE_FLATE_H
#define FATHOM_BASE_FLATE_H

#include "base/err.h"

struct flate;

/* What comes out goes to write in pieces of at most 64 KiB. */
enum fathom_status flate_open(struct flate **out, fathom_write_fn *write, void *user, struct fathom_err *err);
enum fathom_status flate_write(struct flate *f, const void *bytes, size_t n, struct fathom_err *err);
enum fathom_status flate_close(struct flate *f,
                               struct fathom_err *err); /* ends the data and frees f, also on failure */
void flate_discard(struct flate *f);                    /* NULL is fine */

#endif
