/* layernorm and rmsnorm: see ref/ for the definitions. A task is some rows; three (two) passes over a row that stays in
 * the cache. Limit: bytes, 8 an element. Bits equal ref's. */
#include <math.h>

#include "kernel/x86/simd.h"
#include "kernel/x86/simd_ops.h"

#define TASK_ELEMENTS 16384

struct norm {
    const struct run *run;
    const struct tensor *y, *x, *w, *bias;
    float eps;
    size_t rows_per_task;
};

SIMD_INLINE vf stored(const struct run *run, vf x) { return run->act == FATHOM_BF16 ? v_round_bf16(x) : x; }

/* Elements [j, j + n) of a weight vector; n < SIMD_LANES only at its end. */
SIMD_INLINE vf weights_at(const struct tensor *w, size_t j, size_t n)
{
    if (w->dtype == DTYPE_F32)
        return v_load_n((const float *)w->data + j, n);
    const uint16_t *at = (const uint16_t *)w->data + j;
    return w->dtype == DTYPE_BF16 ? v_load_bf16_n(at, n) : v_load_f16_n(at, n);
}

/* Sum over a row, in 16 lanes, of (x - mean), or of its square by fma. */
SIMD_INLINE float row_sum(const float *x, size_t m, float mean, const bool squared)
{
    v16 sum = v16_set(0.0f);
    for (size_t j = 0; j < m; j += 16)
        for (size_t i = 0; i < V16_VECTORS; i++) {
            size_t n = v16_lanes(m - j, i * SIMD_LANES);
            vf d = v_load_n(x + j + i * SIMD_LANES, n);
            if (!squared) {
                sum.v[i] = sum.v[i] + d;
                continue;
            }
            d = v_select(v_first(n), d - v_set(mean), v_zero());
            sum.v[i] = v_fma(d, d, sum.v[i]);
        }
    return v16_fold_add(sum);
}

static void layernorm_row(const struct norm *a, float *y, const float *x, size_t m)
{
    float mean = row_sum(x, m, 0.0f, false) / (float)m;
    vf inverse = v_set(1.0f / sqrtf(row_sum(x, m, mean, true) / (float)m + a->eps)), shift = v_set(mean);
    for (size_t j = 0; j < m; j += SIMD_LANES) {
        size_t n = m - j < SIMD_LANES ? m - j : SIMD_LANES;
        vf out = v_fma((v_load_n(x + j, n) - shift) * inverse, weights_at(a->w, j, n), weights_at(a->bias, j, n));
        v_store_n(y + j, stored(a->run, out), n);
    }
}

static void rmsnorm_row(const struct norm *a, float *y, const float *x, size_t m)
{
    vf inverse = v_set(1.0f / sqrtf(row_sum(x, m, 0.0f, true) / (float)m + a->eps));
    for (size_t j = 0; j < m; j += SIMD_LANES) {
        size_t n = m - j < SIMD_LANES ? m - j : SIMD_LANES;
        vf out = stored(a->run, v_load_n(x + j, n) * inverse);
        v_store_n(y + j, stored(a->run, out * weights_at(a->w, j, n)), n);
    }
}

static void norm_task(void *ctx, size_t task, int thread)
{
    (void)thread;
    const struct norm *a = ctx;
    size_t n = a->x->shape[0], m = a->x->shape[1], first = task * a->rows_per_task;
    size_t end = first + a->rows_per_task < n ? first + a->rows_per_task : n;
    for (size_t r = first; r < end; r++) {
        if (a->bias)
            layernorm_row(a, tensor_row(a->y, r), tensor_row(a->x, r), m);
        else
            rmsnorm_row(a, tensor_row(a->y, r), tensor_row(a->x, r), m);
    }
}

static void norm(struct run *run, struct norm *a)
{
    size_t n = a->x->shape[0], m = a->x->shape[1];
    a->rows_per_task = m < TASK_ELEMENTS ? TASK_ELEMENTS / m : 1;
    pool_run(run->pool, (n + a->rows_per_task - 1) / a->rows_per_task, norm_task, a);
}

void SIMD_NAME(layernorm)(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
                          const struct tensor *bias, float eps)
{
    struct norm a = {.run = run, .y = y, .x = x, .w = w, .bias = bias, .eps = eps};
    norm(run, &a);
}

void SIMD_NAME(rmsnorm)(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w, float eps)
{
    struct norm a = {.run = run, .y = y, .x = x, .w = w, .eps = eps};
    norm(run, &a);
}
