/* The run: its memory and its first error. */
#include <stdarg.h>
#include <stdio.h>

#include "base/checked.h"
#include "kernel/kernel.h"

bool run_ok(const struct run *run) { return run->err.status == FATHOM_OK; }

void run_fail(struct run *run, enum fathom_status status, const char *format, ...)
{
    if (!run_ok(run))
        return;
    char text[sizeof run->err.message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fail(&run->err, status, "%s", text);
}

void *run_scratch(struct run *run, size_t n, size_t size)
{
    if (!run_ok(run))
        return NULL;
    void *p = arena_array(run->arena, n, size);
    if (p)
        return p;
    struct fathom_err err;
    size_t bytes, used = run->arena->used_bytes, limit = run->arena->limit_bytes;
    fail_nomem(&err, size_mul(n, size, &bytes) ? bytes : SIZE_MAX, "activations");
    if (limit < SIZE_MAX)
        run_fail(run, FATHOM_ENOMEM, "%s, %zu of %zu in use", err.message, used, limit);
    else
        run_fail(run, FATHOM_ENOMEM, "%s, %zu in use", err.message, used);
    return NULL;
}

struct tensor run_alloc(struct run *run, size_t rows, size_t cols)
{
    size_t n;
    if (!size_mul(rows, cols, &n))
        n = SIZE_MAX;
    return tensor_2d(run->dtype, run_scratch(run, n, dtype_bytes(run->dtype, 1)), rows, cols);
}

struct tensor run_alloc_f32(struct run *run, size_t rows, size_t cols)
{
    size_t n;
    if (!size_mul(rows, cols, &n))
        n = SIZE_MAX;
    return tensor_2d(DTYPE_F32, run_scratch(run, n, sizeof(float)), rows, cols);
}

struct tensor run_alloc_map(struct run *run, size_t n, size_t h, size_t w, size_t c)
{
    size_t elements;
    if (!size_mul(n, h, &elements) || !size_mul(elements, w, &elements) || !size_mul(elements, c, &elements))
        elements = SIZE_MAX;
    return tensor_4d(run->dtype, run_scratch(run, elements, dtype_bytes(run->dtype, 1)), n, h, w, c);
}
