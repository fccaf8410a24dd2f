#include "nn/v4_compressor.h"

#include <string.h>

#include "base/half.h"
#include "nn/v4_rounding.h"

/* Token rows in hand: those before the chunk come from the state, the chunk's follow. With overlap and a window before,
 * its `ratio` rows come first, of which only the first halves are known and needed. */
struct gathered {
    struct tensor values, scores;
    size_t n_old, n_before; /* rows from the state; of these, those of the window before */
};

static struct gathered gather(struct run *run, const struct v4_rows *rows, size_t pos, size_t n)
{
    size_t n_partial = pos % rows->ratio, width = rows->width, dim = rows->dim;
    struct gathered g = {.n_before = rows->previous && pos >= rows->ratio ? rows->ratio : 0};
    g.n_old = g.n_before + n_partial;
    g.values = run_alloc(run, g.n_old + n, width);
    g.scores = run_alloc(run, g.n_old + n, width);
    if (!run_ok(run))
        return g;
    for (size_t i = 0; i < g.n_before; i++) {
        const float *from = rows->previous + i * 2 * dim;
        float *v = tensor_row(&g.values, i), *s = tensor_row(&g.scores, i);
        memcpy(v, from, dim * sizeof *v);
        memcpy(s, from + dim, dim * sizeof *s);
        memset(v + dim, 0, dim * sizeof *v);
        memset(s + dim, 0, dim * sizeof *s);
    }
    for (size_t i = 0; i < n_partial; i++) {
        const float *from = rows->partial + i * 2 * width;
        memcpy(tensor_row(&g.values, g.n_before + i), from, width * sizeof *from);
        memcpy(tensor_row(&g.scores, g.n_before + i), from + width, width * sizeof *from);
    }
    return g;
}

static void keep_rows(float *to, const struct gathered *g, size_t first, size_t n, size_t width)
{
    for (size_t i = 0; i < n; i++, to += 2 * width) {
        memcpy(to, tensor_row(&g->values, first + i), width * sizeof *to);
        memcpy(to + width, tensor_row(&g->scores, first + i), width * sizeof *to);
    }
}

/* The rows that later windows need: of the window that is open now, and the first halves of the last complete one. */
static void keep(struct v4_rows *rows, const struct gathered *g, size_t pos, size_t n, size_t n_windows)
{
    size_t open = g->n_before + n_windows * rows->ratio, n_open = (pos + n) % rows->ratio;
    if (rows->previous && n_windows > 0)
        keep_rows(rows->previous, g, open - rows->ratio, rows->ratio, rows->dim);
    keep_rows(rows->partial, g, open, n_open, rows->width);
}

struct tensor v4_compress(struct run *run, const struct v4_compressor *w, struct v4_rows *rows, const struct tensor *a,
                          size_t pos, float norm_eps, const float *frequencies, size_t n_pairs, enum v4_entry kind)
{
    size_t n = a->shape[0], first = pos / rows->ratio, n_windows = (pos + n) / rows->ratio - first;
    struct tensor y = run_alloc(run, n_windows, rows->dim);
    int32_t *starts = run_scratch(run, n_windows, sizeof *starts);
    struct arena_mark mark = arena_save(run->arena);
    struct gathered g = gather(run, rows, pos, n);
    struct tensor values = tensor_rows(&g.values, g.n_old, n), scores = tensor_rows(&g.scores, g.n_old, n);

    linear(run, &values, a, &w->value_w, NULL);
    linear(run, &scores, a, &w->score_w, NULL);
    if (n_windows > 0) {
        struct compress_shape shape = {rows->ratio, rows->width > rows->dim, g.n_before > 0};
        compress(run, &y, &g.values, &g.scores, &w->ape, shape);
        for (size_t i = 0; run_ok(run) && kind != V4_ENTRY_PLAIN && i < tensor_elements(&y); i++)
            ((float *)y.data)[i] = bf16_round(((float *)y.data)[i]);
        rmsnorm(run, &y, &y, &w->norm, norm_eps);
        for (size_t i = 0; run_ok(run) && i < n_windows; i++)
            starts[i] = (int32_t)((first + i) * rows->ratio);
        rope_pairs(run, &y, 1, starts, frequencies, n_pairs, false);
        for (size_t i = 0; run_ok(run) && i < n_windows; i++)
            if (kind == V4_ENTRY_KEY)
                v4_round_key(tensor_row(&y, i), rows->dim, 2 * n_pairs);
            else if (kind == V4_ENTRY_INDEX)
                v4_round_index(tensor_row(&y, i), rows->dim);
    }
    if (run_ok(run))
        keep(rows, &g, pos, n, n_windows);
    arena_restore(run->arena, mark);
    return y;
}

void v4_store_keys(struct index_keys *keys, const struct tensor *entries, size_t first)
{
    size_t d = keys->dim;
    for (size_t i = 0; i < entries->shape[0]; i++) {
        size_t w = first + i;
        const float *from = tensor_row(entries, i);
        float *to = keys->data + w / KV_LANES * KV_LANES * d + w % KV_LANES;
        for (size_t j = 0; j < d; j++)
            to[j * KV_LANES] = from[j];
    }
}
