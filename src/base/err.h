/* Status and message. What can fail returns enum fathom_status and takes struct fathom_err *err last. */
#ifndef FATHOM_BASE_ERR_H
#define FATHOM_BASE_ERR_H

#include <fathom.h>

/* Sets err (may be NULL) and returns status, so that a failure is one line: return fail(err, FATHOM_EIO, "...").
 * Control characters in the formatted message are replaced by '?': it may quote hostile input. */
enum fathom_status fail(struct fathom_err *err, enum fathom_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds where it was in front of the message ("layer 7: ") and returns err's status. */
enum fathom_status fail_at(struct fathom_err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* fail(err, FATHOM_ENOMEM, "out of memory: %zu bytes for %s"); SIZE_MAX: more than a size_t can tell. */
enum fathom_status fail_nomem(struct fathom_err *err, size_t bytes, const char *what);

#endif
