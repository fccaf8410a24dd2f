/* A model in the published dtypes, and the same with every FP8 and FP4 weight written out in bf16, which holds their values
 * exactly. */
#ifndef FATHOM_TESTS_V4_NATIVE_H
#define FATHOM_TESTS_V4_NATIVE_H

#include "kernel/ref/ref_ops.h"
#include "tiny_v4.h"

/* A part of the tensors as a file of their own. */
static inline void native_write(const char *path, const struct v4_tensor *tensors, size_t n, size_t n_experts,
                                struct pool *pool)
{
    struct fathom_err err = {0};
    if (synth_v4_write(path, tensors, n, n_experts, pool, &err))
        fail_msg("%s", err.message);
}

struct native_rows {
    const struct tensor *from;
    uint16_t *to;
};

static inline void native_row(void *ctx, size_t row, int thread)
{
    const struct native_rows *r = ctx;
    size_t cols = r->from->shape[1];
    float *x = malloc(cols * sizeof *x);
    (void)thread;
    if (!x)
        abort();
    weight_row_f32(x, r->from, row);
    for (size_t i = 0; i < cols; i++)
        r->to[row * cols + i] = bf16_from_f32(x[i]);
    free(x);
}

static inline struct weights *native_expand(const struct weights *native, const struct v4_tensor *tensors, size_t n,
                                            struct pool *pool)
{
    struct weights *w;
    struct fathom_err err = {0};
    assert_int_equal(weights_create(&w, NULL), FATHOM_OK);
    for (size_t i = 0; i < n; i++) {
        const struct v4_tensor *t = &tensors[i];
        struct tensor from = weights_find(native, t->name)->tensor, to = from;
        if (t->dtype == DTYPE_F8_E8M0)
            continue;
        if (t->dtype == DTYPE_F8_E4M3 || t->dtype == DTYPE_F4_E2M1) {
            if (weights_get_linear(native, &from, t->shape[0], t->shape[1], &err, t->name))
                fail_msg("%s", err.message);
            to =
                tensor_2d(DTYPE_BF16, malloc(dtype_bytes(DTYPE_BF16, v4_tensor_elements(t))), t->shape[0], t->shape[1]);
            assert_non_null(to.data);
            struct native_rows rows = {&from, to.data};
            pool_run(pool, t->shape[0], native_row, &rows);
        } else {
            size_t bytes = dtype_bytes(t->dtype, v4_tensor_elements(t));
            to.data = malloc(bytes);
            assert_non_null(to.data);
            memcpy(to.data, from.data, bytes);
        }
        if (weights_add(w, t->name, &to, &err))
            fail_msg("%s", err.message);
    }
    return w;
}

#endif
