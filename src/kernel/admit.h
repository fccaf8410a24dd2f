/* What every public operation checks before a back end sees its arguments, and what it reports afterwards. */
#ifndef FATHOM_KERNEL_ADMIT_H
#define FATHOM_KERNEL_ADMIT_H

#include <stdio.h>
#include <string.h>

#include "kernel/kernel.h"

struct named {
    const char *name;
    const struct tensor *t;
};

/* "linear: shapes or dtypes do not fit: y [2, 3] f32, x [2, 4] f32, w [3, 5] bf16" */
static inline void refuse(struct run *run, const char *op, const struct named *args, size_t n_args)
{
    char text[512] = "", shape[96];
    size_t at = 0;
    for (size_t i = 0; i < n_args && at < sizeof text; i++)
        if (args[i].t)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%s %s %s", at ? ", " : "", args[i].name,
                                   tensor_shape_text(args[i].t, shape), dtype_name(args[i].t->dtype));
    run_fail(run, FATHOM_EINVAL, "%s: shapes or dtypes do not fit: %s", op, text);
}

/* Whether op is to be done: nothing failed before, nobody wants to stop, every argument has data, and they fit. */
static inline bool admit(struct run *run, const char *op, bool fits, const struct named *args, size_t n_args)
{
    if (!run_ok(run))
        return false;
    if (run->keep_going && !run->keep_going(run->keep_going_ctx)) {
        run_fail(run, FATHOM_ECANCELLED, "cancelled");
        return false;
    }
    if (!fits) {
        refuse(run, op, args, n_args);
        return false;
    }
    for (size_t i = 0; i < n_args; i++)
        if (args[i].t && !args[i].t->data)
            return false;
    return true;
}

#define ADMIT(run, op, fits, ...)                                                                                      \
    admit(run, op, fits, (const struct named[]){__VA_ARGS__},                                                          \
          sizeof((const struct named[]){__VA_ARGS__}) / sizeof(struct named))

static inline void trace(struct run *run, const char *op, const struct tensor *out)
{
    if (run->trace && run_ok(run))
        run->trace(run->trace_ctx, op, out);
}

static inline bool is_matrix(const struct tensor *t) /* of activations in float32 */
{
    return t->dtype == DTYPE_F32 && t->n_dims == 2 && t->stride[1] == 1;
}

static inline bool is_act(const struct run *run, const struct tensor *t) /* a matrix of them as the run stores them */
{
    return t->dtype == run->dtype && t->n_dims == 2 && t->stride[1] == 1;
}

static inline bool is_vector(const struct tensor *t, size_t n) /* of weights */
{
    return (t->dtype == DTYPE_F32 || t->dtype == DTYPE_BF16) && t->n_dims == 1 && t->shape[0] == n && t->stride[0] == 1;
}

static inline bool is_float_weight(const struct tensor *t)
{
    return t->dtype == DTYPE_F32 || t->dtype == DTYPE_F16 || t->dtype == DTYPE_BF16;
}

static inline bool is_weight(const struct tensor *t, size_t rows, size_t cols)
{
    if (t->n_dims != 2 || t->shape[0] != rows || t->shape[1] != cols || t->stride[1] != 1 || rows == 0 || cols == 0)
        return false;
    if (t->dtype == DTYPE_Q8_0)
        return cols % Q8_0_BLOCK == 0 && t->stride[0] % Q8_0_BLOCK == 0;
    if (t->dtype == DTYPE_F8_E4M3 || t->dtype == DTYPE_F4_E2M1) {
        size_t scales[2];
        scale_shape(t->dtype, rows, cols, scales);
        return t->scales && t->scale_stride >= scales[1] &&
               (t->dtype == DTYPE_F8_E4M3 || (cols % F4_BLOCK == 0 && t->stride[0] % 2 == 0));
    }
    return is_float_weight(t);
}

static inline bool same_shape(const struct tensor *a, const struct tensor *b)
{
    return a->n_dims == b->n_dims && memcmp(a->shape, b->shape, (size_t)a->n_dims * sizeof a->shape[0]) == 0;
}

static inline bool mlp_weights_fit(const struct mlp_weights *w, size_t dim)
{
    size_t hidden = w->gate.shape[0];
    return w->gate.data && w->up.data && w->down.data && is_weight(&w->gate, hidden, dim) &&
           is_weight(&w->up, hidden, dim) && is_weight(&w->down, dim, hidden);
}

/* All experts, equally wide, and the shared one; the router apart. */
static inline bool moe_experts_fit(const struct moe_weights *w, size_t dim)
{
    if (w->top_k == 0 || w->top_k > w->n_experts || w->n_experts > INT32_MAX)
        return false;
    for (size_t e = 0; e < w->n_experts; e++)
        if (!mlp_weights_fit(&w->experts[e], dim) || w->experts[e].gate.shape[0] != w->experts[0].gate.shape[0])
            return false;
    return !w->shared.gate.data || mlp_weights_fit(&w->shared, dim);
}

#endif
