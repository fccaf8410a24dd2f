/* attention_relpos: see kernel.h and ref/attention_relpos.c for what is computed.
 *
 * A unit is what sees itself: one head of one view, or of one window. Its keys lie packed, a tile being one row of the
 * key grid padded to whole panels, its values contiguous. A task is a block of a unit's queries, which pass over the
 * tiles together, a group of rows at a time; the tiles in hand stay in the first-level cache.
 *
 * The relative positions cost no array of size N x n: for a group of queries the products with the reversed tables are
 * formed by the same dot kernel, and since the tables are reversed, a query's factors are a contiguous slice. rel_h is
 * then one number and rel_w one fixed vector (-inf behind its end, which hides the padding lanes) for each query and
 * tile.
 *
 * Global: keys and values of as many units as keep the threads busy are packed by all threads, then used by all.
 * Windows: each task packs its own, from the unpadded map. Scratch a thread: about BLOCK_ROWS * (2 d + gh + gw) floats,
 * and with windows 2 window^2 d. Limit: flops, 4 N N d a head; bench_attention measured 0.67 of the FMA peak for a grid of
 * 64 x 64 and 0.44 for windows of 14 with 16 lanes. Bits equal ref's. */
#include <string.h>

#include "kernel/ref/ref_ops.h"
#include "kernel/x86/attention_core.h"
#include "kernel/x86/simd_ops.h"

#define MAX_TILES 4 /* that pass a group of queries at once */

struct unit {                  /* one head of one view or window */
    size_t view, head, y0, x0; /* the origin of the key grid in the map */
    size_t vh, vw;             /* the part of it that lies in the map   */
};

struct relpos {
    const struct run *run;
    struct relpos_shape shape;
    const struct tensor *y, *qkv;
    size_t d, kh, kw, n_panels;  /* the key grid; panels in a tile                                  */
    size_t windows_h, windows_w; /* of a view; 1 x 1 when global                                    */
    size_t tiles_at_once;        /* <= MAX_TILES                                                    */
    const float *pad;            /* [3C]; or NULL                                                   */
    const float *zero;           /* [d], keys of padding lanes                                      */
    const float *tables;         /* rel_h, then rel_w, reversed, in panels [panel][d][16]           */
    size_t panels_h, panels_w;   /* of the tables                                                   */
    size_t h_stride;             /* of a block's factors: kh rounded up                             */
    size_t first_unit, blocks;   /* global: units in `keys` start here; blocks of queries in a unit */
    float *keys, *values;        /* global: [unit][tile][panel][d][16], [unit][kh * kw][d]          */
    float *scratch;              /* [thread][scratch_floats]                                        */
    size_t scratch_floats, factors_stride, scores_stride;
};

/* A block of queries, and where the parts of a thread's scratch lie. */
struct block {
    size_t n_rows, n_padded;               /* rows padded to whole groups */
    size_t qy[BLOCK_ROWS], qx[BLOCK_ROWS]; /* in the key grid             */
    struct query_rows rows;
    float *bias_h, *bias_w; /* [rows][h_stride], [rows][16 n_panels] */
    float *factors;         /* [GROUP_ROWS][factors_stride]          */
    float *scores;          /* [GROUP_ROWS][scores_stride]           */
};

static size_t unit_keys(const struct relpos *a) { return a->kh * a->n_panels * 16 * a->d; }
static size_t unit_values(const struct relpos *a) { return a->kh * a->kw * a->d; }

/* Units are numbered by view, window, head. */
static struct unit unit_at(const struct relpos *a, size_t i)
{
    const struct relpos_shape *s = &a->shape;
    size_t windows = a->windows_h * a->windows_w, window = i / s->n_heads % windows;
    struct unit u = {.view = i / s->n_heads / windows, .head = i % s->n_heads};
    u.y0 = window / a->windows_w * a->kh;
    u.x0 = window % a->windows_w * a->kw;
    u.vh = s->gh - u.y0 < a->kh ? s->gh - u.y0 : a->kh;
    u.vw = s->gw - u.x0 < a->kw ? s->gw - u.x0 : a->kw;
    return u;
}

static size_t map_row(const struct relpos *a, const struct unit *u, size_t y, size_t x)
{
    return (u->view * a->shape.gh + u->y0 + y) * a->shape.gw + u->x0 + x;
}

/* q (0), k (1) or v (2) of a token of the key grid. */
static const float *token(const struct relpos *a, const struct unit *u, size_t part, size_t y, size_t x)
{
    size_t offset = (part * a->shape.n_heads + u->head) * a->d;
    if (y >= u->vh || x >= u->vw)
        return a->pad + offset;
    return (const float *)a->qkv->data + map_row(a, u, y, x) * a->qkv->stride[0] + offset;
}

static float *output(const struct relpos *a, const struct unit *u, size_t y, size_t x)
{
    return (float *)a->y->data + map_row(a, u, y, x) * a->y->stride[0] + u->head * a->d;
}

/* Asks for what packing a tile and its queries will read: rows of a head lie far apart, where no hardware looks ahead. */
static void prefetch_tile(const struct relpos *a, const struct unit *u, size_t ky)
{
    for (size_t kx = 0; ky < u->vh && kx < u->vw; kx++)
        for (size_t part = 0; part < 3; part++) {
            const float *row = token(a, u, part, ky, kx);
            for (size_t j = 0; j < a->d; j += 16)
                __builtin_prefetch(row + j);
        }
}

static void pack_tile(const struct relpos *a, const struct unit *u, size_t ky, float *keys, float *values)
{
    prefetch_tile(a, u, ky + 1);
    keys += ky * a->n_panels * 16 * a->d;
    values += ky * a->kw * a->d;
    for (size_t panel = 0; panel < a->n_panels; panel++) {
        const float *rows[16];
        for (size_t lane = 0; lane < 16; lane++) {
            size_t kx = panel * 16 + lane;
            rows[lane] = kx < a->kw ? token(a, u, 1, ky, kx) : a->zero;
        }
        SIMD_NAME(attention_pack_panel)(keys + panel * 16 * a->d, rows, a->d);
    }
    for (size_t kx = 0; kx < a->kw; kx++)
        copy_row(values + kx * a->d, token(a, u, 2, ky, kx), a->d);
}

static void block_init(struct block *b, const struct relpos *a, const struct unit *u, size_t index, float *scratch)
{
    size_t first = index * BLOCK_ROWS, n = u->vh * u->vw - first;
    b->n_rows = n < BLOCK_ROWS ? n : BLOCK_ROWS;
    b->n_padded = round_up(b->n_rows, GROUP_ROWS);
    b->rows = query_rows_init(scratch, b->n_padded, a->d);
    b->bias_w = scratch + query_rows_floats(BLOCK_ROWS, a->d);
    b->bias_h = b->bias_w + BLOCK_ROWS * a->n_panels * 16;
    b->factors = b->bias_h + BLOCK_ROWS * a->h_stride;
    b->scores = b->factors + GROUP_ROWS * a->factors_stride;
    size_t qy = first / u->vw, qx = first % u->vw;
    for (size_t r = 0; r < b->n_padded; r++) {
        b->qy[r] = qy;
        b->qx[r] = qx;
        if (r < b->n_rows) {
            copy_row(b->rows.q + r * a->d, token(a, u, 0, qy, qx), a->d);
            for (size_t j = 0; j < a->d; j += 16)
                __builtin_prefetch(output(a, u, qy, qx) + j, 1);
        } else {
            clear_row(b->rows.q + r * a->d, a->d);
        }
        if (r + 1 < b->n_rows && ++qx == u->vw) {
            qx = 0;
            qy++;
        }
    }
}

/* The part of a table of n_panels panels, for keys n on an axis, that queries at at[0..GROUP_ROWS) need: their products
 * go to factors, and the returned lane stands for factors' first. Query at x needs the lanes [n - 1 - x, 2 n - 1 - x). */
static size_t form_axis(float *factors, size_t stride, const float *q, const float *table, size_t n, const size_t *at,
                        size_t d)
{
    size_t low = at[0], high = at[0];
    for (size_t r = 1; r < GROUP_ROWS; r++) {
        low = at[r] < low ? at[r] : low;
        high = at[r] > high ? at[r] : high;
    }
    size_t first = (n - 1 - high) / 16, end = (2 * n - 2 - low) / 16 + 1;
    SIMD_NAME(attention_dots)(factors, stride, q, table + first * d * 16, d, GROUP_ROWS, end - first);
    return first * 16;
}

/* The relative-position factors of the queries of a group. */
static void form_factors(const struct relpos *a, struct block *b, size_t g)
{
    const float *q = b->rows.q + g * a->d, *table_w = a->tables + a->panels_h * a->d * 16;
    size_t w_stride = a->n_panels * 16, from_h = 0, from_w = 0;
    float *factors_w = b->factors + a->panels_h * 16;
    if (a->panels_h + a->panels_w <= 4) { /* few enough to be formed at once, needed or not */
        SIMD_NAME(attention_dots)
        (b->factors, a->factors_stride, q, a->tables, a->d, GROUP_ROWS, a->panels_h + a->panels_w);
    } else {
        from_h = form_axis(b->factors, a->factors_stride, q, a->tables, a->kh, b->qy + g, a->d);
        from_w = form_axis(factors_w, a->factors_stride, q, table_w, a->kw, b->qx + g, a->d);
    }
    for (size_t r = 0; r < GROUP_ROWS; r++) {
        const float *h = b->factors + r * a->factors_stride + (a->kh - 1 - b->qy[g + r] - from_h);
        const float *w = factors_w + r * a->factors_stride + (a->kw - 1 - b->qx[g + r] - from_w);
        float *bias_h = b->bias_h + (g + r) * a->h_stride, *bias_w = b->bias_w + (g + r) * w_stride;
        for (size_t i = 0; i < a->h_stride; i += SIMD_LANES)
            v_store(bias_h + i, v_load(h + i));
        for (size_t i = 0; i < w_stride; i += SIMD_LANES)
            v_store(bias_w + i, v_select(v_first(v16_lanes(a->kw, i)), v_load(w + i), v_set(-INFINITY)));
    }
}

/* s = s * scale + bias_h + bias_w over the lanes of a tile, row by row; returns the largest of each. */
SIMD_INLINE vf finish_scores(float *s, size_t s_stride, size_t n_panels, float scale, const float *bias_h,
                             size_t h_stride, const float *bias_w)
{
    v16 max[GROUP_ROWS];
    UNROLL for (size_t r = 0; r < GROUP_ROWS; r++)
    {
        vf h = v_set(bias_h[r * h_stride]);
        max[r] = v16_set(-INFINITY);
        for (size_t lane = 0; lane < n_panels * 16; lane += 16)
            for (size_t i = 0; i < V16_VECTORS; i++) {
                float *at = s + r * s_stride + lane + i * SIMD_LANES;
                vf x = v_load(at) * v_set(scale) + h + v_load(bias_w + r * n_panels * 16 + lane + i * SIMD_LANES);
                v_store(at, x);
                max[r].v[i] = v_max(x, max[r].v[i]);
            }
    }
    return group_max(max, GROUP_ROWS);
}

/* n_tiles tiles of n_panels panels, the first of which is the tile-th, for the queries of a group. */
SIMD_INLINE void attend_tiles_of(const struct relpos *a, struct block *b, size_t g, size_t tile, size_t n_tiles,
                                 const float *keys, const float *values, const size_t n_panels)
{
    size_t d = a->d, tile_lanes = n_panels * 16, stride = a->scores_stride;
    float alpha[MAX_TILES * SIMD_LANES], scale = 1.0f / sqrtf((float)d);
    SIMD_NAME(attention_dots)
    (b->scores, stride, b->rows.q + g * d, keys + tile * tile_lanes * d, d, GROUP_ROWS, n_tiles * n_panels);
    for (size_t t = 0; t < n_tiles; t++) {
        float *s = b->scores + t * tile_lanes;
        vf max = finish_scores(s, stride, n_panels, scale, b->bias_h + g * a->h_stride + tile + t, a->h_stride,
                               b->bias_w + g * tile_lanes);
        softmax_tile(s, stride, n_panels, b->rows.max + g / GROUP_ROWS * SIMD_LANES, b->rows.sums + g * 16,
                     alpha + t * SIMD_LANES, max, GROUP_ROWS);
    }
    SIMD_NAME(attention_values)
    (b->rows.acc + g * d, d, alpha, b->scores, stride, tile_lanes, values + tile * a->kw * d, a->kw, n_tiles,
     GROUP_ROWS);
}

/* Two functions, for the reason given in attention_core_simd.c: with one panel a tile, the loops over panels cost most
 * and are gone. */
typedef void attend_fn(const struct relpos *a, struct block *b, size_t g, size_t tile, size_t n_tiles,
                       const float *keys, const float *values);

static __attribute__((noinline)) void attend_narrow_tiles(const struct relpos *a, struct block *b, size_t g,
                                                          size_t tile, size_t n_tiles, const float *keys,
                                                          const float *values)
{
    attend_tiles_of(a, b, g, tile, n_tiles, keys, values, 1);
}

static __attribute__((noinline)) void attend_wide_tiles(const struct relpos *a, struct block *b, size_t g, size_t tile,
                                                        size_t n_tiles, const float *keys, const float *values)
{
    attend_tiles_of(a, b, g, tile, n_tiles, keys, values, a->n_panels);
}

/* One block of queries of a unit, from its packed keys and values to rows of y. */
static void attend(const struct relpos *a, const struct unit *u, size_t index, const float *keys, const float *values,
                   float *scratch)
{
    attend_fn *attend_tiles = a->n_panels == 1 ? attend_narrow_tiles : attend_wide_tiles;
    struct block b;
    block_init(&b, a, u, index, scratch);
    for (size_t g = 0; g < b.n_padded; g += GROUP_ROWS)
        form_factors(a, &b, g);
    for (size_t tile = 0; tile < a->kh; tile += a->tiles_at_once) {
        size_t n_tiles = a->kh - tile < a->tiles_at_once ? a->kh - tile : a->tiles_at_once;
        for (size_t g = 0; g < b.n_padded; g += GROUP_ROWS)
            attend_tiles(a, &b, g, tile, n_tiles, keys, values);
    }
    for (size_t r = 0; r < b.n_rows; r++)
        store_row(a->run, output(a, u, b.qy[r], b.qx[r]), b.rows.acc + r * a->d, b.rows.sums + r * 16, a->d);
}

static void window_task(void *ctx, size_t task, int thread)
{
    const struct relpos *a = ctx;
    float *scratch = a->scratch + (size_t)thread * a->scratch_floats;
    float *keys = scratch + a->scratch_floats - unit_keys(a) - unit_values(a), *values = keys + unit_keys(a);
    struct unit u = unit_at(a, task);
    for (size_t ky = 0; ky < a->kh; ky++)
        pack_tile(a, &u, ky, keys, values);
    for (size_t block = 0; block * BLOCK_ROWS < u.vh * u.vw; block++)
        attend(a, &u, block, keys, values, scratch);
}

static void pack_task(void *ctx, size_t task, int thread)
{
    (void)thread;
    const struct relpos *a = ctx;
    size_t i = task / a->kh;
    struct unit u = unit_at(a, a->first_unit + i);
    pack_tile(a, &u, task % a->kh, a->keys + i * unit_keys(a), a->values + i * unit_values(a));
}

static void global_task(void *ctx, size_t task, int thread)
{
    const struct relpos *a = ctx;
    size_t i = task / a->blocks;
    struct unit u = unit_at(a, a->first_unit + i);
    attend(a, &u, task % a->blocks, a->keys + i * unit_keys(a), a->values + i * unit_values(a),
           a->scratch + (size_t)thread * a->scratch_floats);
}

/* The rows of a table in reverse, as panels; lanes behind the end are zero. */
static void pack_table(float *packed, const struct tensor *table, size_t n_panels, size_t d)
{
    size_t n_rows = table->shape[0];
    for (size_t i = 0; i < n_panels * 16; i++)
        for (size_t j = 0; j < d; j++)
            packed[(i / 16 * d + j) * 16 + i % 16] = i < n_rows ? value_f32(table, (n_rows - 1 - i) * d + j) : 0.0f;
}

static const float *pack_tables(struct run *run, const struct relpos *a, const struct tensor *rel_h,
                                const struct tensor *rel_w)
{
    float *packed = run_scratch(run, (a->panels_h + a->panels_w) * 16 * a->d, sizeof *packed);
    if (packed) {
        pack_table(packed, rel_h, a->panels_h, a->d);
        pack_table(packed + a->panels_h * 16 * a->d, rel_w, a->panels_w, a->d);
    }
    return packed;
}

static const float *pack_vector(struct run *run, const struct tensor *t, size_t n)
{
    float *packed = run_scratch(run, n, sizeof *packed);
    for (size_t i = 0; packed && i < n; i++)
        packed[i] = t ? value_f32(t, i) : 0.0f;
    return packed;
}

/* As many units as give each thread several blocks, so that the threads end together. */
static size_t units_at_once(const struct relpos *a, size_t n_units)
{
    size_t n_blocks = 8 * (size_t)pool_threads(a->run->pool), n = (n_blocks + a->blocks - 1) / a->blocks;
    return n < n_units ? n : n_units;
}

static void attend_globally(struct run *run, struct relpos *a, size_t n_units)
{
    size_t n_at_once;
    a->blocks = (a->kh * a->kw + BLOCK_ROWS - 1) / BLOCK_ROWS;
    n_at_once = units_at_once(a, n_units);
    a->keys = run_scratch(run, n_at_once * unit_keys(a), sizeof(float));
    a->values = run_scratch(run, n_at_once * unit_values(a), sizeof(float));
    if (!run_ok(run))
        return;
    for (a->first_unit = 0; a->first_unit < n_units; a->first_unit += n_at_once) {
        size_t n = n_units - a->first_unit < n_at_once ? n_units - a->first_unit : n_at_once;
        pool_run(run->pool, n * a->kh, pack_task, a);
        pool_run(run->pool, n * a->blocks, global_task, a);
    }
}

void SIMD_NAME(attention_relpos)(struct run *run, struct tensor *y, const struct tensor *qkv, const struct tensor *pad,
                                 const struct tensor *rel_h, const struct tensor *rel_w, struct relpos_shape shape)
{
    size_t d = y->shape[1] / shape.n_heads;
    if (d % 16 != 0) {
        attention_relpos_ref(run, y, qkv, pad, rel_h, rel_w, shape);
        return;
    }
    struct arena_mark mark = arena_save(run->arena);
    struct relpos a = {.run = run, .shape = shape, .y = y, .qkv = qkv, .d = d};
    a.kh = shape.window ? shape.window : shape.gh;
    a.kw = shape.window ? shape.window : shape.gw;
    a.n_panels = round_up(a.kw, 16) / 16;
    a.windows_h = (shape.gh + a.kh - 1) / a.kh;
    a.windows_w = (shape.gw + a.kw - 1) / a.kw;
    a.tiles_at_once = a.n_panels < MAX_TILES ? MAX_TILES / a.n_panels : 1;
    a.scores_stride = a.tiles_at_once * a.n_panels * 16;
    a.panels_h = round_up(2 * a.kh - 1, 16) / 16;
    a.panels_w = round_up(2 * a.kw - 1, 16) / 16;
    a.factors_stride = (a.panels_h + a.panels_w + 1) * 16; /* slices are copied in whole vectors: one panel to spare */
    a.h_stride = round_up(a.kh, 16);
    a.scratch_floats = query_rows_floats(BLOCK_ROWS, d) + BLOCK_ROWS * (a.h_stride + a.n_panels * 16) +
                       GROUP_ROWS * (a.factors_stride + a.scores_stride) +
                       (shape.window ? unit_keys(&a) + unit_values(&a) : 0);
    a.scratch_floats = round_up(a.scratch_floats, 16);
    a.pad = pack_vector(run, pad, 3 * shape.n_heads * d);
    a.zero = pack_vector(run, NULL, d);
    a.tables = pack_tables(run, &a, rel_h, rel_w);
    a.scratch = run_scratch(run, (size_t)pool_threads(run->pool) * a.scratch_floats, sizeof(float));

    size_t n_units = shape.n_views * a.windows_h * a.windows_w * shape.n_heads;
    if (run_ok(run) && shape.window)
        pool_run(run->pool, n_units, window_task, &a);
    else if (run_ok(run))
        attend_globally(run, &a, n_units);
    arena_restore(run->arena, mark);
}
