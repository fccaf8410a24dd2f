/* Softmax over each row in 16 lanes, then the top_k largest; see ref/softmax_topk.c. */
#include "kernel/ref/ref_ops.h"
#include "kernel/x86/simd.h"
#include "kernel/x86/simd_ops.h"

static void softmax(float *p, const float *x, size_t n)
{
    float max = -INFINITY;
    for (size_t i = 0; i < n; i++)
        max = x[i] > max ? x[i] : max;
    v16 sum = v16_set(0.0f);
    for (size_t i = 0; i < n; i += 16) {
        size_t lanes = n - i < 16 ? n - i : 16;
        v16 v = v16_load_n(x + i, lanes);
        for (int j = 0; j < V16_VECTORS; j++)
            v.v[j] = v_exp(v.v[j] - v_set(max));
        v16_store_n(p + i, v, lanes);
        sum = v16_add(sum, v16_load_n(p + i, lanes)); /* lanes beyond n add zero */
    }
    vf total = v_set(v16_fold_add(sum));
    for (size_t i = 0; i < n; i += SIMD_LANES) {
        size_t lanes = n - i < SIMD_LANES ? n - i : SIMD_LANES;
        v_store_n(p + i, v_load_n(p + i, lanes) / total, lanes);
    }
}

void SIMD_NAME(softmax_topk)(struct run *run, const struct tensor *logits, size_t top_k, int32_t *ids, float *weights)
{
    size_t n = logits->shape[1];
    struct arena_mark mark = arena_save(run->arena);
    float *p = run_scratch(run, n, sizeof(float));
    for (size_t row = 0; row < logits->shape[0] && run_ok(run); row++) {
        softmax(p, tensor_row(logits, row), n);
        pick_largest(run, p, n, row, top_k, ids + row * top_k, weights + row * top_k);
    }
    arena_restore(run->arena, mark);
}
