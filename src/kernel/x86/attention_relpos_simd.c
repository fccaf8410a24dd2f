/* attention_relpos: see kernel.h and ref/attention_relpos.c for what is computed.
 *
 * A unit is what sees itself: one head of one view, or of one window. Its keys lie packed, a tile being one row of the
 * key grid padded to whole panels, its values contiguous. A task is a block of a unit's queries, which pass over the
 * tiles together, a group of rows at a time; the tile stays in the first-level cache.
 *
 * The relative positions cost no array of size N x n: for a group of queries the products with the reversed tables are
 * formed by the same dot kernel, and since the tables are reversed, a query's factors are a contiguous slice. rel_h is
 * then one number and rel_w one fixed vector (-inf behind its end, which hides the padding lanes) for each query and
 * tile.
 *
 * Global: keys and values of as many units as keep the threads busy are packed by all threads, then used by all.
 * Windows: each task packs its own, from the unpadded map. Scratch a thread: about BLOCK_ROWS * (2 d + gh + gw) floats,
 * and with windows 2 window^2 d. Limit: flops, 4 N N d a head. Bits equal ref's. */
#include "kernel/ref/ref_ops.h"
#include "kernel/x86/attention_core.h"
#include "kernel/x86/simd_ops.h"

struct unit {                  /* one head of one view or window */
    size_t view, head, y0, x0; /* the origin of the key grid in the map */
    size_t vh, vw;             /* the part of it that lies in the map   */
};

struct relpos {
    const struct run *run;
    struct relpos_shape shape;
    const struct tensor *y, *qkv;
    size_t d, kh, kw, n_panels;     /* the key grid; panels in a tile     */
    size_t windows_h, windows_w;    /* of a view; 1 x 1 when global       */
    size_t tiles_at_once;           /* tiles whose dot products are formed by one call */
    const float *pad;               /* [3C]; or NULL                      */
    const float *zero;              /* [d], keys of padding lanes         */
    const float *table_h, *table_w; /* reversed and packed: [panel][d][16] */
    size_t first_unit, blocks;      /* global: units in `keys` start here; blocks of queries in a unit */
    float *keys, *values;           /* global: [unit][tile][panel][d][16], [unit][kh * kw][d] */
    float *scratch;                 /* [thread][scratch_floats]           */
    size_t scratch_floats, factors_floats, scores_stride;
};

static size_t unit_keys(const struct relpos *a)
{
    return a->kh * a->n_panels * 16 * a->d;
}
static size_t unit_values(const struct relpos *a)
{
    return a->kh * a->kw * a->d;
}

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
    return (const float *)tensor_row(a->qkv, map_row(a, u, y, x)) + offset;
}

static void pack_tile(const struct relpos *a, const struct unit *u, size_t ky, float *keys, float *values)
{
    keys += ky * a->n_panels * 16 * a->d;
    values += ky * a->kw * a->d;
    for (size_t panel = 0; panel < a->n_panels; panel++) {
        const float *rows[16];
        for (size_t lane = 0; lane < 16; lane++) {
            size_t kx = panel * 16 + lane;
            rows[lane] = kx < a->kw ? token(a, u, 1, ky, kx) : a->zero;
        }
        pack_keys(keys + panel * 16 * a->d, rows, a->d);
    }
    for (size_t kx = 0; kx < a->kw; kx++)
        memcpy(values + kx * a->d, token(a, u, 2, ky, kx), a->d * sizeof *values);
}

/* factors[r][offset + k] = q[r] · table[i + k] for the slices i = n - 1 - at[r], k < n, of the rows of a group. */
static size_t form_factors(float *factors, size_t stride, const float *q, const float *table, size_t n,
                           const size_t at[GROUP_ROWS], size_t d)
{
    size_t low = at[0], high = at[0];
    for (size_t r = 1; r < GROUP_ROWS; r++) {
        low = at[r] < low ? at[r] : low;
        high = at[r] > high ? at[r] : high;
    }
    size_t first = (n - 1 - high) / 16, end = (2 * n - 2 - low) / 16 + 1;
    dots(factors, stride, q, table + first * d * 16, d, GROUP_ROWS, end - first);
    return first * 16;
}

/* The relative-position factors of a block: bias_h [rows][kh], bias_w [rows][16 n_panels]. */
static void form_biases(const struct relpos *a, const struct unit *u, const struct query_rows *rows, size_t first_query,
                        size_t n_rows, float *bias_h, float *bias_w, float *factors)
{
    size_t stride = a->factors_floats / GROUP_ROWS, w_stride = a->n_panels * 16;
    for (size_t g = 0; g < n_rows; g += GROUP_ROWS) {
        size_t qy[GROUP_ROWS], qx[GROUP_ROWS], n_queries = u->vh * u->vw;
        for (size_t r = 0; r < GROUP_ROWS; r++) {
            size_t query = first_query + g + r < n_queries ? first_query + g + r : n_queries - 1;
            qy[r] = query / u->vw;
            qx[r] = query % u->vw;
        }
        size_t from = form_factors(factors, stride, rows->q + g * a->d, a->table_h, a->kh, qy, a->d);
        for (size_t r = 0; r < GROUP_ROWS; r++)
            memcpy(bias_h + (g + r) * a->kh, factors + r * stride + (a->kh - 1 - qy[r] - from), a->kh * sizeof *bias_h);
        from = form_factors(factors, stride, rows->q + g * a->d, a->table_w, a->kw, qx, a->d);
        for (size_t r = 0; r < GROUP_ROWS; r++) {
            float *out = bias_w + (g + r) * w_stride;
            memcpy(out, factors + r * stride + (a->kw - 1 - qx[r] - from), a->kw * sizeof *out);
            for (size_t kx = a->kw; kx < w_stride; kx++)
                out[kx] = -INFINITY;
        }
    }
}

/* s = s * scale + bias_h + bias_w over the lanes of a tile, row by row, and the largest. */
static inline void finish_scores(float *s, size_t s_stride, float *tile_max, size_t n_panels, float scale,
                                 const float *bias_h, size_t h_stride, const float *bias_w)
{
    const size_t n = n_panels * 16;
    for (int r = 0; r < GROUP_ROWS; r++) {
        vf h = v_set(bias_h[(size_t)r * h_stride]);
        v16 max = v16_set(-INFINITY);
        for (size_t panel = 0; panel < n_panels; panel++)
            for (int i = 0; i < V16_VECTORS; i++) {
                size_t lane = panel * 16 + (size_t)i * SIMD_LANES;
                float *at = s + (size_t)r * s_stride + lane;
                vf x = v_load(at) * v_set(scale) + h + v_load(bias_w + (size_t)r * n + lane);
                v_store(at, x);
                max.v[i] = v_max(x, max.v[i]);
            }
        tile_max[r] = v16_fold_max(max);
    }
}

/* One block of queries of a unit, from its packed keys and values to rows of y. */
static void attend(const struct relpos *a, const struct unit *u, size_t block, const float *keys, const float *values,
                   float *scratch)
{
    size_t d = a->d, n_queries = u->vh * u->vw, first = block * BLOCK_ROWS;
    size_t n_rows = n_queries - first < BLOCK_ROWS ? n_queries - first : BLOCK_ROWS;
    size_t n_padded = round_up(n_rows, GROUP_ROWS), w_stride = a->n_panels * 16;
    struct query_rows rows = query_rows_init(scratch, n_padded, d);
    float *factors = scratch + query_rows_floats(BLOCK_ROWS, d), *scores = factors + a->factors_floats;
    float *bias_h = scores + GROUP_ROWS * a->scores_stride, *bias_w = bias_h + BLOCK_ROWS * a->kh;
    float alpha[16], tile_max[16], scale = 1.0f / sqrtf((float)d);

    for (size_t r = 0; r < n_padded; r++) {
        size_t query = first + r;
        if (r < n_rows)
            memcpy(rows.q + r * d, token(a, u, 0, query / u->vw, query % u->vw), d * sizeof(float));
        else
            memset(rows.q + r * d, 0, d * sizeof(float));
    }
    form_biases(a, u, &rows, first, n_padded, bias_h, bias_w, factors);

    for (size_t tile = 0; tile < a->kh; tile += a->tiles_at_once) {
        size_t n_tiles = a->kh - tile < a->tiles_at_once ? a->kh - tile : a->tiles_at_once;
        for (size_t g = 0; g < n_padded; g += GROUP_ROWS) {
            dots(scores, a->scores_stride, rows.q + g * d, keys + tile * w_stride * d, d, GROUP_ROWS,
                 n_tiles * a->n_panels);
            for (size_t t = 0; t < n_tiles; t++) {
                float *s = scores + t * w_stride;
                finish_scores(s, a->scores_stride, tile_max, a->n_panels, scale, bias_h + g * a->kh + tile + t, a->kh,
                              bias_w + g * w_stride);
                softmax_tile(s, a->scores_stride, a->n_panels, rows.max + g, rows.sums + g * 16, alpha, tile_max,
                             GROUP_ROWS);
                add_values(rows.acc + g * d, d, alpha, s, a->scores_stride, values + (tile + t) * a->kw * d, a->kw,
                           GROUP_ROWS);
            }
        }
    }
    for (size_t r = 0; r < n_rows; r++) {
        size_t row = map_row(a, u, (first + r) / u->vw, (first + r) % u->vw);
        store_row(a->run, (float *)tensor_row(a->y, row) + u->head * d, &rows, r, d);
    }
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

/* The table's rows in reverse, as panels; lanes behind the end are zero. */
static const float *pack_table(struct run *run, const struct tensor *table, size_t n_rows, size_t d)
{
    size_t n = round_up(n_rows, 16);
    float *packed = run_scratch(run, n * d, sizeof *packed);
    for (size_t i = 0; packed && i < n; i++)
        for (size_t j = 0; j < d; j++)
            packed[(i / 16 * d + j) * 16 + i % 16] = i < n_rows ? value_f32(table, (n_rows - 1 - i) * d + j) : 0.0f;
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
    a.tiles_at_once = a.n_panels < 4 ? 4 / a.n_panels : 1;
    a.scores_stride = a.tiles_at_once * a.n_panels * 16;
    a.factors_floats = GROUP_ROWS * round_up(2 * (a.kh > a.kw ? a.kh : a.kw) - 1, 16);
    a.scratch_floats = query_rows_floats(BLOCK_ROWS, d) + a.factors_floats + GROUP_ROWS * a.scores_stride +
                       BLOCK_ROWS * (a.kh + a.n_panels * 16) + (shape.window ? unit_keys(&a) + unit_values(&a) : 0);
    a.scratch_floats = round_up(a.scratch_floats, 16);
    a.pad = pack_vector(run, pad, 3 * shape.n_heads * d);
    a.zero = pack_vector(run, NULL, d);
    a.table_h = pack_table(run, rel_h, 2 * a.kh - 1, d);
    a.table_w = pack_table(run, rel_w, 2 * a.kw - 1, d);
    a.scratch = run_scratch(run, (size_t)pool_threads(run->pool) * a.scratch_floats, sizeof(float));

    size_t n_units = shape.n_views * a.windows_h * a.windows_w * shape.n_heads;
    if (run_ok(run) && shape.window)
        pool_run(run->pool, n_units, window_task, &a);
    else if (run_ok(run))
        attend_globally(run, &a, n_units);
    arena_restore(run->arena, mark);
}
