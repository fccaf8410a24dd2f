/* Position tables resized to another grid (spec deepseek-ocr §3.1 steps 2 and 4): resize_1d, resize_2d of kernel.h. The
 * taps are computed in double precision and rounded once; products and sums are float32 and not fused, taps ascending. */
#include <math.h>
#include <string.h>

#include "base/cubic.h"
#include "kernel/ref/ref_ops.h"

/* Row `row` of a table as floats into out. */
static void table_row(float *out, const struct tensor *table, size_t row, size_t dim)
{
    if (table->dtype == DTYPE_F32) {
        memcpy(out, (const float *)table->data + row * dim, dim * sizeof *out);
    } else {
        const uint16_t *in = (const uint16_t *)table->data + row * dim;
        for (size_t d = 0; d < dim; d++)
            out[d] = bf16_to_f32(in[d]);
    }
}

/* Taps of output x on an axis n_in -> n_out: weights [lo, lo + *n), at most n_in of them. */
static size_t bicubic_taps(float *weights, size_t *n, size_t x, size_t n_in, size_t n_out)
{
    double scale = (double)n_in / (double)n_out, filter = scale > 1 ? scale : 1, support = 2 * filter;
    double center = ((double)x + 0.5) * scale, sum = 0;
    double first = trunc(center - support + 0.5), last = trunc(center + support + 0.5);
    size_t lo = first > 0 ? (size_t)first : 0, hi = last < (double)n_in ? (size_t)last : n_in;
    for (size_t k = lo; k < hi; k++)
        sum += cubic(((double)k - center + 0.5) / filter);
    for (size_t k = lo; k < hi; k++)
        weights[k - lo] = (float)(cubic(((double)k - center + 0.5) / filter) / sum);
    *n = hi - lo;
    return lo;
}

static void add_scaled(float *restrict out, const float *restrict in, float w, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] += w * in[i];
}

static void round_stored(const struct run *run, float *x, size_t n)
{
    for (size_t i = 0; i < n && run->act == FATHOM_BF16; i++)
        x[i] = bf16_round(x[i]);
}

void resize_2d_ref(struct run *run, struct tensor *y, const struct tensor *table, size_t side, size_t g)
{
    size_t dim = y->shape[1];
    struct arena_mark mark = arena_save(run->arena);
    float *across = run_scratch(run, side * g * dim, sizeof(float)); /* [side, g, dim], resized along the rows */
    float *row = run_scratch(run, side * dim, sizeof(float)), *weights = run_scratch(run, side, sizeof(float));
    float *dst = y->data;
    if (!run_ok(run))
        return;
    if (side == g) {
        for (size_t i = 0; i < g * g; i++)
            table_row(dst + i * dim, table, i, dim);
        round_stored(run, dst, g * g * dim);
        arena_restore(run->arena, mark);
        return;
    }
    memset(across, 0, side * g * dim * sizeof *across);
    memset(dst, 0, g * g * dim * sizeof *dst);
    for (size_t y0 = 0; y0 < side; y0++) {
        for (size_t x = 0; x < side; x++)
            table_row(row + x * dim, table, y0 * side + x, dim);
        for (size_t x = 0; x < g; x++) {
            size_t n, lo = bicubic_taps(weights, &n, x, side, g);
            for (size_t k = 0; k < n; k++)
                add_scaled(across + (y0 * g + x) * dim, row + (lo + k) * dim, weights[k], dim);
        }
    }
    for (size_t y1 = 0; y1 < g; y1++) {
        size_t n, lo = bicubic_taps(weights, &n, y1, side, g);
        for (size_t k = 0; k < n; k++)
            add_scaled(dst + y1 * g * dim, across + (lo + k) * g * dim, weights[k], g * dim);
    }
    round_stored(run, dst, g * g * dim);
    arena_restore(run->arena, mark);
}

void resize_1d_ref(struct run *run, struct tensor *y, const struct tensor *table)
{
    size_t n_in = table->shape[0], n_out = y->shape[0], dim = y->shape[1];
    struct arena_mark mark = arena_save(run->arena);
    float *a = run_scratch(run, dim, sizeof(float)), *b = run_scratch(run, dim, sizeof(float));
    if (!run_ok(run))
        return;
    for (size_t r = 0; r < n_out; r++) {
        float s = ((float)r + 0.5f) * ((float)n_in / (float)n_out) - 0.5f;
        s = s > 0 ? s : 0;
        size_t i = (size_t)s, next = i + 1 < n_in ? i + 1 : n_in - 1;
        float f = s - (float)i, *dst = (float *)y->data + r * dim;
        table_row(a, table, i, dim);
        table_row(b, table, next, dim);
        for (size_t d = 0; d < dim; d++)
            dst[d] = (1 - f) * a[d] + f * b[d];
    }
    round_stored(run, y->data, n_out * dim);
    arena_restore(run->arena, mark);
}
