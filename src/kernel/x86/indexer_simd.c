/* index_scores and index_topk: see ref/indexer.c. A task of the scores is some panels of keys for one query: the heads of
 * the query are the rows of attention_core.h, and their dot products are weighted in the order of the heads, a key to a
 * lane. Limit: flops, 2 dim a key and head. A task of the choice is a query. Bits equal ref's. */
#include <string.h>

#include "kernel/ref/indexer.h"
#include "kernel/ref/ref_ops.h"
#include "kernel/x86/attention_core.h"
#include "kernel/x86/simd_ops.h"

#define PANELS 4       /* of 16 keys, at once      */
#define TASK_PANELS 32 /* a multiple of PANELS     */

struct scoring {
    const struct tensor *scores, *q, *weights;
    const struct index_keys *keys;
    size_t pos, tasks_per_query;
    float *scratch; /* [thread][heads padded to groups][dim] */
    size_t scratch_floats;
};

/* Keys [16 panel, ...) of n; the scores of those behind the n-th are not stored. */
SIMD_INLINE void score_panels(const struct scoring *a, const float *q, const float *weights, size_t panel, size_t n,
                              float *out)
{
    size_t d = a->keys->dim, n_heads = a->weights->shape[1], left = n - panel * 16;
    size_t n_panels = left < PANELS * 16 ? (left + 15) / 16 : PANELS;
    float dots[GROUP_ROWS * PANELS * 16];
    v16 sum[PANELS];
    for (size_t i = 0; i < PANELS; i++)
        sum[i] = v16_set(0.0f);
    for (size_t g = 0; g < n_heads; g += GROUP_ROWS) {
        SIMD_NAME(attention_dots)
        (dots, PANELS * 16, q + g * d, a->keys->data + panel * 16 * d, d, GROUP_ROWS, n_panels);
        for (size_t h = g; h < g + GROUP_ROWS && h < n_heads; h++)
            for (size_t i = 0; i < n_panels; i++) {
                v16 dot = v16_load(dots + (h - g) * PANELS * 16 + i * 16);
                for (size_t v = 0; v < V16_VECTORS; v++)
                    dot.v[v] = v_max(v_zero(), dot.v[v]); /* NaN stays */
                sum[i] = v16_fma(v16_set(weights[h]), dot, sum[i]);
            }
    }
    for (size_t i = 0; i < n_panels; i++)
        v16_store_n(out + i * 16, sum[i], left - i * 16 < 16 ? left - i * 16 : 16);
}

static void score_task(void *ctx, size_t task, int thread)
{
    const struct scoring *a = ctx;
    size_t d = a->keys->dim, row = task / a->tasks_per_query, n_heads = a->weights->shape[1];
    size_t n = (a->pos + row + 1) / a->keys->ratio, first = task % a->tasks_per_query * TASK_PANELS;
    float *q = a->scratch + (size_t)thread * a->scratch_floats, *out = tensor_row(a->scores, row);
    if (first * 16 >= n)
        return;
    memcpy(q, tensor_row(a->q, row), n_heads * d * sizeof *q);
    for (size_t i = n_heads * d; i < round_up(n_heads, GROUP_ROWS) * d; i++)
        q[i] = 0.0f;
    for (size_t panel = first; panel < first + TASK_PANELS && panel * 16 < n; panel += PANELS)
        score_panels(a, q, tensor_row(a->weights, row), panel, n, out + panel * 16);
}

void SIMD_NAME(index_scores)(struct run *run, struct tensor *scores, const struct tensor *q,
                             const struct tensor *weights, const struct index_keys *keys, size_t pos)
{
    size_t n_max = (pos + q->shape[0]) / keys->ratio;
    struct arena_mark mark = arena_save(run->arena);
    struct scoring a = {.scores = scores, .q = q, .weights = weights, .keys = keys, .pos = pos};
    a.tasks_per_query = (n_max + 16 * TASK_PANELS - 1) / (16 * TASK_PANELS);
    a.scratch_floats = round_up(round_up(weights->shape[1], GROUP_ROWS) * keys->dim, 16);
    a.scratch = run_scratch(run, (size_t)pool_threads(run->pool) * a.scratch_floats, sizeof(float));
    if (run_ok(run))
        pool_run(run->pool, q->shape[0] * a.tasks_per_query, score_task, &a);
    arena_restore(run->arena, mark);
}

struct choosing {
    int32_t *chosen;
    const struct tensor *scores;
    size_t ratio, top_k, pos;
    bool *failed; /* [rows] */
};

static void choose_task(void *ctx, size_t row, int thread)
{
    const struct choosing *a = ctx;
    (void)thread;
    a->failed[row] = !choose_highest(a->chosen + row * a->top_k, tensor_row(a->scores, row),
                                     (a->pos + row + 1) / a->ratio, a->top_k);
}

void SIMD_NAME(index_topk)(struct run *run, int32_t *chosen, const struct tensor *scores, size_t ratio, size_t top_k,
                           size_t pos)
{
    struct arena_mark mark = arena_save(run->arena);
    struct choosing a = {chosen, scores, ratio, top_k, pos, run_scratch(run, scores->shape[0], sizeof(bool))};
    if (run_ok(run))
        pool_run(run->pool, scores->shape[0], choose_task, &a);
    for (size_t row = 0; row < scores->shape[0] && run_ok(run); row++)
        if (a.failed[row])
            run_fail(run, FATHOM_ENUMERIC, "index_topk: an index score of position %zu is NaN", pos + row);
    arena_restore(run->arena, mark);
}
