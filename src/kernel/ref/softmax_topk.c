/* Softmax over each row, p = exp(x - max) / sum, then the top_k largest p, ties to the lower id, in descending order.
 * The probabilities stay float32 in every mode: the reference computes the router in float32. */
#include "kernel/math.h"
#include "kernel/ref/ref_ops.h"

static void softmax(float *p, const float *x, size_t n)
{
    float max = -INFINITY, lanes[16] = {0};
    for (size_t i = 0; i < n; i++)
        max = x[i] > max ? x[i] : max;
    for (size_t i = 0; i < n; i++) {
        p[i] = exp_f32(x[i] - max);
        lanes[i % 16] += p[i];
    }
    float sum = fold_lanes(lanes);
    for (size_t i = 0; i < n; i++)
        p[i] /= sum;
}

bool pick_largest(struct run *run, float *p, size_t n, size_t row, size_t top_k, int32_t *ids, float *weights)
{
    for (size_t i = 0; i < n; i++)
        if (isnan(p[i])) {
            run_fail(run, FATHOM_ENUMERIC,
                     "softmax_topk: row %zu has no probabilities, its logits hold NaN or infinity", row);
            return false;
        }
    for (size_t k = 0; k < top_k; k++) {
        size_t best = 0;
        for (size_t i = 1; i < n; i++)
            best = p[i] > p[best] ? i : best;
        ids[k] = (int32_t)best;
        weights[k] = p[best];
        p[best] = -1.0f;
    }
    return true;
}

void softmax_topk_ref(struct run *run, const struct tensor *logits, size_t top_k, int32_t *ids, float *weights)
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
