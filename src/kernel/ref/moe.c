/* y = sum over the chosen experts, ascending id, of weight * mlp_e(x), plus the shared expert's mlp(x). With a limit on
 * swiglu, gate x and up x are clamped first.
 *
 * With bfloat16 activations: the router's logits and weights stay float32; an expert's output is stored, so rounded; the
 * weighted sum is float32 and rounded once; the sum with the shared expert's output is rounded. */
#include <math.h>

#include "kernel/math.h"
#include "kernel/ref/ref_ops.h"

/* Chosen experts of one token in ascending order of id, with their final weights. */
static void choose(struct run *run, const struct tensor *x, const struct moe_weights *w, float *logits, int32_t *ids,
                   float *weights)
{
    enum fathom_dtype act = run->act;
    struct tensor l = tensor_2d(DTYPE_F32, logits, 1, w->n_experts);
    run->act = FATHOM_F32;
    linear_ref(run, &l, x, &w->router, NULL, EPILOGUE_NONE);
    run->act = act;
    softmax_topk_ref(run, &l, w->top_k, ids, weights);

    float sum = 0.0f;
    for (size_t i = 0; i < w->top_k; i++)
        sum += weights[i];
    for (size_t i = 0; i < w->top_k; i++)
        weights[i] = (w->norm_topk ? weights[i] / sum : weights[i]) * w->routed_scale;
    for (size_t i = 1; i < w->top_k; i++)
        for (size_t j = i; j > 0 && ids[j - 1] > ids[j]; j--) {
            int32_t id = ids[j];
            float weight = weights[j];
            ids[j] = ids[j - 1], weights[j] = weights[j - 1];
            ids[j - 1] = id, weights[j - 1] = weight;
        }
}

/* The hidden rows of one token; NaN passes through the clamps. */
static void swiglu_clamped(struct run *run, struct tensor *y, const struct tensor *x, const struct mlp_weights *w,
                           float limit)
{
    struct arena_mark mark = arena_save(run->arena);
    struct tensor up = run_alloc(run, 1, y->shape[1]);
    if (run_ok(run)) {
        linear_ref(run, y, x, &w->gate, NULL, EPILOGUE_NONE);
        linear_ref(run, &up, x, &w->up, NULL, EPILOGUE_NONE);
        float *g = y->data, *u = up.data;
        for (size_t i = 0; i < y->shape[1]; i++) {
            g[i] = g[i] > limit ? limit : g[i];
            u[i] = u[i] > limit ? limit : u[i] < -limit ? -limit : u[i];
            g[i] = stored_f32(run, stored_f32(run, silu_f32(g[i])) * u[i]);
        }
    }
    arena_restore(run->arena, mark);
}

static void mlp_ref(struct run *run, struct tensor *y, const struct tensor *x, const struct mlp_weights *w, float limit)
{
    struct arena_mark mark = arena_save(run->arena);
    struct tensor hidden = run_alloc(run, 1, w->gate.shape[0]);
    if (run_ok(run)) {
        if (limit > 0.0f)
            swiglu_clamped(run, &hidden, x, w, limit);
        else
            swiglu_ref(run, &hidden, x, &w->gate, &w->up);
        linear_ref(run, y, &hidden, &w->down, NULL, EPILOGUE_NONE);
    }
    arena_restore(run->arena, mark);
}

void moe_chosen_ref(struct run *run, struct tensor *y, const struct tensor *x, const struct moe_weights *w,
                    const int32_t *ids, const float *weights)
{
    size_t dim = x->shape[1];
    struct arena_mark mark = arena_save(run->arena);
    struct tensor one = run_alloc(run, 1, dim);
    const float *expert = one.data;

    for (size_t row = 0; row < x->shape[0] && run_ok(run); row++, ids += w->top_k, weights += w->top_k) {
        struct tensor x_row = tensor_rows(x, row, 1);
        float *sum = tensor_row(y, row);
        for (size_t i = 0; i < dim; i++)
            sum[i] = 0.0f;
        for (size_t k = 0; k < w->top_k && run_ok(run); k++) {
            mlp_ref(run, &one, &x_row, &w->experts[ids[k]], w->swiglu_limit);
            for (size_t i = 0; i < dim; i++)
                sum[i] = fmaf(weights[k], expert[i], sum[i]);
        }
        for (size_t i = 0; i < dim; i++)
            sum[i] = stored_f32(run, sum[i]);
        if (w->shared.gate.data && run_ok(run)) {
            mlp_ref(run, &one, &x_row, &w->shared, w->swiglu_limit);
            for (size_t i = 0; i < dim; i++)
                sum[i] = stored_f32(run, sum[i] + expert[i]);
        }
    }
    arena_restore(run->arena, mark);
}

void moe_ref(struct run *run, struct tensor *y, const struct tensor *x, const struct moe_weights *w)
{
    struct arena_mark mark = arena_save(run->arena);
    float *logits = run_scratch(run, w->n_experts, sizeof(float));
    float *weights = run_scratch(run, w->top_k, sizeof(float));
    int32_t *ids = run_scratch(run, w->top_k, sizeof(int32_t));
    for (size_t row = 0; row < x->shape[0] && run_ok(run); row++) {
        struct tensor x_row = tensor_rows(x, row, 1), y_row = tensor_rows(y, row, 1);
        choose(run, &x_row, w, logits, ids, weights);
        if (run_ok(run))
            moe_chosen_ref(run, &y_row, &x_row, w, ids, weights);
    }
    arena_restore(run->arena, mark);
}
