/* attention_sparse: see kernel.h and ref/attention_sparse.c for what is computed.
 *
 * A task is one query and some of its heads, which share all keys: the heads are the rows of attention_core.h. Tile by
 * tile the query's keys are packed into panels and, where they do not lie side by side (chosen entries), copied as
 * values; both serve all heads of the task, so gathering is about one part in the number of heads. Limit: flops, 4 d a
 * key and head; with few heads the bytes of the keys. Bits equal ref's. */
#include <string.h>

#include "kernel/ref/ref_ops.h"
#include "kernel/ref/sparse_list.h"
#include "kernel/x86/attention_core.h"
#include "kernel/x86/simd_ops.h"

#define DECODE_HEADS (2 * GROUP_ROWS) /* heads of a task when queries alone do not occupy the threads */
#define PREFILL_HEADS (6 * GROUP_ROWS)
#define PREFILL_QUERIES 16

struct sparse {
    const struct run *run;
    const struct tensor *y, *q, *sinks;
    const struct sparse_keys *keys;
    size_t d, n_heads, pos;
    size_t heads_per_task, tasks_per_query;
    float *scratch; /* [thread][scratch_floats] */
    size_t scratch_floats;
};

/* The keys of a tile in the two orders that the inner loops read. */
struct tile {
    float *keys;         /* [ATTENTION_TILE / 16][d][16]     */
    float *copies;       /* [ATTENTION_TILE][d]              */
    const float *values; /* rows of d, the source or a copy */
    size_t n;
};

static void gather(struct tile *tile, const struct sparse_list *list, size_t start, size_t d)
{
    const float *rows[ATTENTION_TILE];
    bool adjacent = true;
    tile->n = list->n - start < ATTENTION_TILE ? list->n - start : ATTENTION_TILE;
    for (size_t j = 0; j < ATTENTION_TILE; j++) { /* lanes behind the last key repeat it and count for nothing */
        rows[j] = sparse_list_key(list, start + (j < tile->n ? j : tile->n - 1));
        adjacent &= j >= tile->n || rows[j] == rows[0] + j * d;
    }
    for (size_t panel = 0; panel * 16 < tile->n; panel++)
        SIMD_NAME(attention_pack_panel)(tile->keys + panel * 16 * d, rows + panel * 16, d);
    tile->values = adjacent ? rows[0] : tile->copies;
    for (size_t j = 0; !adjacent && j < tile->n; j++)
        copy_row(tile->copies + j * d, rows[j], d);
}

/* s = s * scale, -inf behind the n keys; returns the largest of each row. */
SIMD_INLINE vf scale_scores(float *s, size_t n, float scale, const int n_rows)
{
    v16 max[GROUP_ROWS];
    UNROLL for (int r = 0; r < n_rows; r++)
    {
        max[r] = v16_set(-INFINITY);
        for (size_t lane = 0; lane < n; lane += 16)
            for (size_t i = 0; i < V16_VECTORS; i++) {
                float *at = s + (size_t)r * ATTENTION_TILE + lane + i * SIMD_LANES;
                vf x = v_load(at) * v_set(scale);
                if (n < lane + (i + 1) * SIMD_LANES)
                    x = v_select(v_first(v16_lanes(n > lane ? n - lane : 0, i * SIMD_LANES)), x, v_set(-INFINITY));
                v_store(at, x);
                max[r].v[i] = v_max(x, max[r].v[i]);
            }
    }
    return group_max(max, n_rows);
}

static void attend_tile(const struct query_rows *rows, size_t g, size_t d, const struct tile *tile)
{
    float scores[GROUP_ROWS * ATTENTION_TILE], alpha[SIMD_LANES];
    size_t n_panels = (tile->n + 15) / 16;
    SIMD_NAME(attention_dots)(scores, ATTENTION_TILE, rows->q + g * d, tile->keys, d, GROUP_ROWS, n_panels);
    vf max = scale_scores(scores, tile->n, 1.0f / sqrtf((float)d), GROUP_ROWS);
    softmax_tile(scores, ATTENTION_TILE, n_panels, rows->max + g / GROUP_ROWS * SIMD_LANES, rows->sums + g * 16, alpha,
                 max, GROUP_ROWS);
    SIMD_NAME(attention_values)
    (rows->acc + g * d, d, alpha, scores, ATTENTION_TILE, 0, tile->values, tile->n, 1, GROUP_ROWS);
}

static void attend_task(void *ctx, size_t task, int thread)
{
    const struct sparse *a = ctx;
    size_t d = a->d, query = task / a->tasks_per_query, first = task % a->tasks_per_query * a->heads_per_task;
    size_t n_rows = a->n_heads - first < a->heads_per_task ? a->n_heads - first : a->heads_per_task;
    size_t n_padded = round_up(n_rows, GROUP_ROWS);
    float *scratch = a->scratch + (size_t)thread * a->scratch_floats;
    struct tile tile = {.keys = scratch, .copies = scratch + ATTENTION_TILE * d};
    struct query_rows rows = query_rows_init(scratch + 2 * ATTENTION_TILE * d, n_padded, d);
    struct sparse_list list = sparse_list_of(a->keys, query, a->q->shape[0], a->pos);

    for (size_t r = 0; r < n_padded; r++) {
        if (r < n_rows)
            copy_row(rows.q + r * d, (const float *)tensor_row(a->q, query) + (first + r) * d, d);
        else
            clear_row(rows.q + r * d, d);
        rows.max[r / GROUP_ROWS * SIMD_LANES + ROW_LANE(r % GROUP_ROWS)] =
            r < n_rows ? value_f32(a->sinks, first + r) : 0.0f;
        rows.sums[r * 16] = 1.0f;
    }
    for (size_t start = 0; start < list.n; start += ATTENTION_TILE) {
        gather(&tile, &list, start, d);
        for (size_t g = 0; g < n_padded; g += GROUP_ROWS)
            attend_tile(&rows, g, d, &tile);
    }
    for (size_t r = 0; r < n_rows; r++)
        store_row(a->run, (float *)tensor_row(a->y, query) + (first + r) * d, rows.acc + r * d, rows.sums + r * 16, d);
}

void SIMD_NAME(attention_sparse)(struct run *run, struct tensor *y, const struct tensor *q, const struct tensor *sinks,
                                 const struct sparse_keys *keys, size_t n_heads, size_t pos)
{
    size_t d = q->shape[1] / n_heads, n = q->shape[0];
    if (d % 16 != 0) {
        attention_sparse_ref(run, y, q, sinks, keys, n_heads, pos);
        return;
    }
    struct arena_mark mark = arena_save(run->arena);
    struct sparse a = {.run = run, .y = y, .q = q, .sinks = sinks, .keys = keys, .d = d, .n_heads = n_heads};
    a.pos = pos;
    a.heads_per_task = n < PREFILL_QUERIES ? DECODE_HEADS : PREFILL_HEADS;
    a.tasks_per_query = (n_heads + a.heads_per_task - 1) / a.heads_per_task;
    a.scratch_floats = round_up(2 * ATTENTION_TILE * d + query_rows_floats(a.heads_per_task, d), 16);
    a.scratch = run_scratch(run, (size_t)pool_threads(run->pool) * a.scratch_floats, sizeof(float));
    if (run_ok(run))
        pool_run(run->pool, n * a.tasks_per_query, attend_task, &a);
    arena_restore(run->arena, mark);
}
