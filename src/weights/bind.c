#include "weights/bind.h"

#include <stdarg.h>
#include <stdio.h>

struct binder binder_init(const struct weights *w, struct fathom_err *err)
{
    return (struct binder){.weights = w, .err = err};
}

void bind_prefix(struct binder *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(b->prefix, sizeof b->prefix, format, args);
    va_end(args);
}

static void bind(struct binder *b, struct tensor *out, const char *name, int n_dims, const size_t *shape)
{
    if (!b->status)
        b->status = weights_get(b->weights, out, n_dims, shape, b->err, "%s%s", b->prefix, name);
}

void bind_vector(struct binder *b, struct tensor *out, const char *name, size_t n)
{
    bind(b, out, name, 1, (size_t[]){n});
}

void bind_matrix(struct binder *b, struct tensor *out, const char *name, size_t rows, size_t cols)
{
    bind(b, out, name, 2, (size_t[]){rows, cols});
}

void bind_linear(struct binder *b, struct tensor *out, const char *name, size_t rows, size_t cols)
{
    char full[320];
    snprintf(full, sizeof full, "%s%s", b->prefix, name);
    if (!b->status)
        b->status = weights_get_linear(b->weights, out, rows, cols, b->err, full);
}

void bind_conv(struct binder *b, struct tensor *out, const char *name, size_t n_out, size_t n_in, size_t kernel)
{
    bind(b, out, name, 4, (size_t[]){n_out, n_in, kernel, kernel});
}
