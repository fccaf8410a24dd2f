/* attention_prefix and attention_causal: see kernel.h and ref/ for what is computed. Both see keys [0, visible), where
 * visible grows with the row, through the same loops; they differ in where keys and values lie: in the cache, or packed
 * like one in scratch.
 *
 * The rows of one key/value head are its tokens times the query heads that share it, token-major. A task is a block of
 * them, which pass over the tiles together, a group of rows at a time; a lone row (decode without shared heads) passes
 * alone, at the speed of memory. Tiles that a group cannot see are skipped, keys that a row cannot see weigh nothing and
 * their values are not read. Limit: flops, 4 d a visible key and row, of whose peak bench_attention measured 0.68 for 256
 * of 512 keys and 0.64 in a prefill of 1131; in decode the bytes of the cache, read at 0.9 of the memory's peak or more.
 * Bits equal ref's. */
#include <string.h>

#include "kernel/ref/ref_ops.h"
#include "kernel/x86/attention_core.h"
#include "kernel/x86/simd_ops.h"

struct masked {
    const struct run *run;
    const struct tensor *y, *q, *k, *v;
    size_t d, n_heads, n_kv_heads;
    size_t n_seqs, n;     /* sequences, and rows of each                            */
    size_t pos, prefix;   /* row i is token pos + i and sees max(prefix, pos + i + 1) */
    size_t capacity;      /* tokens of a key/value head below                       */
    float *keys, *values; /* [seq][kv head] of struct kv_layer's order              */
    size_t n_blocks;      /* of rows in a key/value head                            */
    float *scratch;       /* [thread][scratch_floats]                               */
    size_t scratch_floats;
};

static size_t n_visible(const struct masked *a, size_t i)
{
    size_t own = a->pos + i + 1, all = a->pos + a->n;
    return own > a->prefix ? own : a->prefix < all ? a->prefix : all;
}

/* Stores keys and values of one head as the tokens [first, first + n). */
static void append(const struct masked *a, size_t seq, size_t kv_head, size_t first, size_t n)
{
    size_t d = a->d, base = (seq * a->n_kv_heads + kv_head) * a->capacity * d;
    for (size_t t = first; t < first + n;) {
        size_t lane = t % 16, n_lanes = 16 - lane < first + n - t ? 16 - lane : first + n - t;
        float *panel = a->keys + base + (t - lane) * d;
        const float *rows[16];
        for (size_t i = 0; i < n_lanes; i++) {
            size_t row = seq * a->n + t + i - a->pos;
            rows[i] = (const float *)tensor_row(a->k, row) + kv_head * d;
            copy_row(a->values + base + (t + i) * d, (const float *)tensor_row(a->v, row) + kv_head * d, d);
        }
        if (n_lanes == 16)
            SIMD_NAME(attention_pack_panel)(panel, rows, d);
        else
            for (size_t j = 0; j < d; j++)
                for (size_t i = 0; i < n_lanes; i++)
                    panel[j * 16 + lane + i] = rows[i][j];
        t += n_lanes;
    }
}

static void append_task(void *ctx, size_t task, int thread)
{
    (void)thread;
    const struct masked *a = ctx;
    size_t heads = a->n_seqs * a->n_kv_heads, seq = task % heads / a->n_kv_heads;
    size_t first = (a->pos / ATTENTION_TILE + task / heads) * ATTENTION_TILE, end = first + ATTENTION_TILE;
    first = first > a->pos ? first : a->pos;
    end = end < a->pos + a->n ? end : a->pos + a->n;
    append(a, seq, task % a->n_kv_heads, first, end - first);
}

/* s = s * scale where the row sees the key, otherwise -inf; returns the largest of each row. */
SIMD_INLINE vf finish_scores(float *s, size_t n_panels, float scale, const size_t *seen, const int n_rows)
{
    v16 max[GROUP_ROWS];
    UNROLL for (int r = 0; r < n_rows; r++)
    {
        max[r] = v16_set(-INFINITY);
        for (size_t lane = 0; lane < n_panels * 16; lane += 16)
            for (size_t i = 0; i < V16_VECTORS; i++) {
                float *at = s + (size_t)r * ATTENTION_TILE + lane + i * SIMD_LANES;
                vf x = v_load(at) * v_set(scale);
                if (seen[r] < lane + (i + 1) * SIMD_LANES)
                    x = v_select(v_first(v16_lanes(seen[r], lane + i * SIMD_LANES)), x, v_set(-INFINITY));
                v_store(at, x);
                max[r].v[i] = v_max(x, max[r].v[i]);
            }
    }
    return group_max(max, n_rows);
}

/* One tile for the rows of a group, ascending, that see the keys [0, visible[r]). */
SIMD_INLINE void attend_tile_rows(const struct query_rows *rows, size_t g, size_t d, const float *keys,
                                  const float *values, size_t start, const size_t *visible, const int n_rows)
{
    float scores[GROUP_ROWS * ATTENTION_TILE], alpha[SIMD_LANES], *acc = rows->acc + g * d;
    size_t seen[GROUP_ROWS];
    for (int r = 0; r < n_rows; r++) {
        size_t n = visible[r] > start ? visible[r] - start : 0;
        seen[r] = n < ATTENTION_TILE ? n : ATTENTION_TILE;
    }
    size_t n_panels = round_up(seen[n_rows - 1], 16) / 16;
    SIMD_NAME(attention_dots)(scores, ATTENTION_TILE, rows->q + g * d, keys + start * d, d, (size_t)n_rows, n_panels);
    vf max = finish_scores(scores, n_panels, 1.0f / sqrtf((float)d), seen, n_rows);
    softmax_tile(scores, ATTENTION_TILE, n_panels, rows->max + g / (size_t)n_rows * SIMD_LANES, rows->sums + g * 16,
                 alpha, max, n_rows);
    values += start * d;
    SIMD_NAME(attention_values)(acc, d, alpha, scores, ATTENTION_TILE, 0, values, seen[0], 1, (size_t)n_rows);
    const float one = 1.0f;
    for (int r = 1; r < n_rows; r++) /* the keys that not all of the rows see */
        if (seen[r] > seen[0])
            SIMD_NAME(attention_values)
    (acc + (size_t)r * d, d, &one, scores + r * ATTENTION_TILE + seen[0], 0, 0, values + seen[0] * d, seen[r] - seen[0],
     1, 1);
}

/* Two functions, for the reason given in attention_core_simd.c. */
typedef void attend_fn(const struct query_rows *rows, size_t g, size_t d, const float *keys, const float *values,
                       size_t start, const size_t *visible);

static __attribute__((noinline)) void attend_tile_row(const struct query_rows *rows, size_t g, size_t d,
                                                      const float *keys, const float *values, size_t start,
                                                      const size_t *visible)
{
    attend_tile_rows(rows, g, d, keys, values, start, visible, 1);
}

static __attribute__((noinline)) void attend_tile_group(const struct query_rows *rows, size_t g, size_t d,
                                                        const float *keys, const float *values, size_t start,
                                                        const size_t *visible)
{
    attend_tile_rows(rows, g, d, keys, values, start, visible, GROUP_ROWS);
}

/* A block of rows of one key/value head. */
static void attend(const struct masked *a, size_t seq, size_t kv_head, size_t block, float *scratch)
{
    size_t d = a->d, shared = a->n_heads / a->n_kv_heads, first = block * BLOCK_ROWS;
    size_t n_rows = a->n * shared - first < BLOCK_ROWS ? a->n * shared - first : BLOCK_ROWS;
    size_t group_rows = n_rows == 1 ? 1 : GROUP_ROWS, n_padded = round_up(n_rows, group_rows);
    size_t base = (seq * a->n_kv_heads + kv_head) * a->capacity * d;
    const float *keys = a->keys + base, *values = a->values + base;
    struct query_rows rows = query_rows_init(scratch, n_padded, d);
    size_t visible[BLOCK_ROWS];

    for (size_t r = 0; r < n_padded; r++) {
        size_t i = (r < n_rows ? first + r : first + n_rows - 1) / shared,
               head = kv_head * shared + (first + r) % shared;
        visible[r] = n_visible(a, i);
        if (r < n_rows)
            copy_row(rows.q + r * d, (const float *)tensor_row(a->q, seq * a->n + i) + head * d, d);
        else
            clear_row(rows.q + r * d, d);
    }
    attend_fn *attend_tile = group_rows == 1 ? attend_tile_row : attend_tile_group;
    size_t group = 0; /* the first that sees the tile */
    for (size_t start = 0; start < visible[n_padded - 1]; start += ATTENTION_TILE) {
        while (visible[group + group_rows - 1] <= start)
            group += group_rows;
        for (size_t g = group; g < n_padded; g += group_rows)
            attend_tile(&rows, g, d, keys, values, start, visible + g);
    }
    for (size_t r = 0; r < n_rows; r++) {
        size_t head = kv_head * shared + (first + r) % shared;
        float *out = (float *)tensor_row(a->y, seq * a->n + (first + r) / shared) + head * d;
        store_row(a->run, out, rows.acc + r * d, rows.sums + r * 16, d);
    }
}

/* The longest tasks, the last blocks, come first. */
static void attend_task(void *ctx, size_t task, int thread)
{
    const struct masked *a = ctx;
    size_t heads = a->n_seqs * a->n_kv_heads, seq = task % heads / a->n_kv_heads, kv_head = task % a->n_kv_heads;
    if (a->n_blocks == 1)
        append(a, seq, kv_head, a->pos, a->n);
    attend(a, seq, kv_head, a->n_blocks - 1 - task / heads, a->scratch + (size_t)thread * a->scratch_floats);
}

static void attend_all(struct run *run, struct masked *a)
{
    size_t heads = a->n_seqs * a->n_kv_heads;
    a->n_blocks = (a->n * (a->n_heads / a->n_kv_heads) + BLOCK_ROWS - 1) / BLOCK_ROWS;
    a->scratch_floats = round_up(query_rows_floats(BLOCK_ROWS, a->d), 16);
    a->scratch = run_scratch(run, (size_t)pool_threads(run->pool) * a->scratch_floats, sizeof(float));
    if (!run_ok(run))
        return;
    if (a->n_blocks > 1) {
        size_t n_tiles = (a->pos + a->n - 1) / ATTENTION_TILE - a->pos / ATTENTION_TILE + 1;
        pool_run(run->pool, n_tiles * heads, append_task, a);
    }
    pool_run(run->pool, a->n_blocks * heads, attend_task, a);
}

void SIMD_NAME(attention_prefix)(struct run *run, struct tensor *y, const struct tensor *q, const struct tensor *k,
                                 const struct tensor *v, size_t n_heads, size_t n_kv_heads, size_t n_seqs,
                                 size_t prefix)
{
    size_t d = q->shape[1] / n_heads, n = q->shape[0] / n_seqs;
    if (d % 16 != 0) {
        attention_prefix_ref(run, y, q, k, v, n_heads, n_kv_heads, n_seqs, prefix);
        return;
    }
    struct arena_mark mark = arena_save(run->arena);
    struct masked a = {
        .run = run, .y = y, .q = q, .k = k, .v = v, .d = d, .n_heads = n_heads, .n_kv_heads = n_kv_heads};
    a.n_seqs = n_seqs;
    a.n = n;
    a.prefix = prefix;
    a.capacity = round_up(n, 16);
    a.keys = run_scratch(run, n_seqs * n_kv_heads * a.capacity * d, sizeof(float));
    a.values = run_scratch(run, n_seqs * n_kv_heads * a.capacity * d, sizeof(float));
    if (run_ok(run))
        attend_all(run, &a);
    arena_restore(run->arena, mark);
}

void SIMD_NAME(attention_causal)(struct run *run, struct tensor *y, const struct tensor *q, const struct tensor *k,
                                 const struct tensor *v, struct kv_layer *kv, size_t n_heads, size_t pos)
{
    if (kv->head_dim % 16 != 0) {
        attention_causal_ref(run, y, q, k, v, kv, n_heads, pos);
        return;
    }
    struct arena_mark mark = arena_save(run->arena);
    struct masked a = {.run = run, .y = y, .q = q, .k = k, .v = v, .d = kv->head_dim, .n_heads = n_heads};
    a.n_kv_heads = kv->n_kv_heads;
    a.n_seqs = 1;
    a.n = q->shape[0];
    a.pos = pos;
    a.capacity = kv->capacity;
    a.keys = kv->k;
    a.values = kv->v;
    attend_all(run, &a);
    arena_restore(run->arena, mark);
}
