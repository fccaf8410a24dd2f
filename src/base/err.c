#include "base/err.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void vformat(struct fathom_err *err, size_t at, const char *format, va_list args)
{
    vsnprintf(err->message + at, sizeof err->message - at, format, args);
    for (char *c = err->message + at; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
}

enum fathom_status fail(struct fathom_err *err, enum fathom_status status, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        err->status = status;
        vformat(err, 0, format, args);
        va_end(args);
    }
    return status;
}

enum fathom_status fail_at(struct fathom_err *err, const char *format, ...)
{
    if (!err)
        return FATHOM_EINVAL;
    struct fathom_err old = *err;
    va_list args;
    va_start(args, format);
    vformat(err, 0, format, args);
    va_end(args);
    size_t n = strlen(err->message);
    snprintf(err->message + n, sizeof err->message - n, "%s", old.message);
    return err->status;
}

enum fathom_status fail_nomem(struct fathom_err *err, size_t bytes, const char *what)
{
    if (bytes == SIZE_MAX)
        return fail(err, FATHOM_ENOMEM, "out of memory: %s would need more than this machine can address", what);
    return fail(err, FATHOM_ENOMEM, "out of memory: %zu bytes for %s", bytes, what);
}

const char *fathom_status_name(enum fathom_status status)
{
    switch (status) {
    case FATHOM_OK: return "ok";
    case FATHOM_EINVAL: return "bad argument";
    case FATHOM_ENOMEM: return "out of memory";
    case FATHOM_EIO: return "input/output error";
    case FATHOM_EFORMAT: return "bad format";
    case FATHOM_ELIMIT: return "limit exceeded";
    case FATHOM_EUNSUPPORTED: return "unsupported";
    case FATHOM_ECANCELLED: return "cancelled";
    case FATHOM_ENUMERIC: return "not a number";
    case FATHOM_EPASSWORD: return "password needed";
    }
    return "unknown status";
}
