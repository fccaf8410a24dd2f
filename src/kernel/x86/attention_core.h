/* The inner loops that all attentions share: a group of queries against a tile of keys, as kernel.h defines it.
 *
 * keys: panels [panel][d][16] of 16 keys each; values: rows [key][d]; d a multiple of 16. A query's scores are one dot
 * product a lane, its probabilities and sums are 16 lanes by position in the tile, its accumulator is a row of d: no sum
 * ever crosses lanes or rows, so the bits do not depend on which queries share a group. */
#ifndef FATHOM_KERNEL_X86_ATTENTION_CORE_H
#define FATHOM_KERNEL_X86_ATTENTION_CORE_H

#include <math.h>

#include "kernel/kernel.h"
#include "kernel/x86/simd.h"

/* Rows and vectors of the micro-kernels fill the registers: 6 x 4 of 32, or 6 x 2 of 16. */
#define GROUP_ROWS 6
#define GROUP_VECTORS (SIMD_LANES == 16 ? 4 : 2)
#define MAX_VECTORS 8
#define BLOCK_ROWS (16 * GROUP_ROWS) /* queries that pass over the keys together */

static inline size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* The state of queries, [rows] of everything, padded to whole groups: padding rows are zero queries whose results are
 * not stored. */
struct query_rows {
    float *q, *acc; /* [rows][d]  */
    float *max;     /* [rows]     */
    float *sums;    /* [rows][16] */
};

static inline size_t query_rows_floats(size_t n_rows, size_t d)
{
    return n_rows * (2 * d + 16) + round_up(n_rows, 16);
}

/* Lays the rows into floats and clears the state. */
static inline struct query_rows query_rows_init(float *floats, size_t n_rows, size_t d)
{
    struct query_rows rows;
    rows.q = floats;
    rows.acc = rows.q + n_rows * d;
    rows.sums = rows.acc + n_rows * d;
    rows.max = rows.sums + n_rows * 16;
    for (size_t i = 0; i < n_rows * (d + 16); i++)
        rows.acc[i] = 0.0f;
    for (size_t r = 0; r < n_rows; r++)
        rows.max[r] = -INFINITY;
    return rows;
}

/* s[r][lane] = q[r] · key[lane] for n_vectors vectors of keys. */
SIMD_INLINE void dots_block(float *s, size_t s_stride, const float *q, const float *keys, size_t d, const int n_rows,
                            const int n_vectors)
{
    vf acc[GROUP_ROWS][MAX_VECTORS];
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < n_vectors; v++)
            acc[r][v] = v_zero();
    for (size_t j = 0; j < d; j++) {
        vf key[MAX_VECTORS];
#pragma GCC unroll 8
        for (int v = 0; v < n_vectors; v++)
            key[v] = v_load(keys + (size_t)(v / V16_VECTORS) * d * 16 + j * 16 + v % V16_VECTORS * SIMD_LANES);
#pragma GCC unroll 8
        for (int r = 0; r < n_rows; r++) {
            vf x = v_set(q[(size_t)r * d + j]);
#pragma GCC unroll 8
            for (int v = 0; v < n_vectors; v++)
                acc[r][v] = v_fma(x, key[v], acc[r][v]);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < n_vectors; v++)
            v_store(s + (size_t)r * s_stride + v * SIMD_LANES, acc[r][v]);
}

/* The same for n_panels panels; n_rows is 1 or GROUP_ROWS. */
SIMD_INLINE void dots(float *s, size_t s_stride, const float *q, const float *keys, size_t d, const int n_rows,
                      size_t n_panels)
{
    const size_t at_once = n_rows == 1 ? 4 : GROUP_VECTORS / V16_VECTORS;
    while (n_panels > 0) {
        /* Five panels go as 3 + 2: a lone panel has too few chains to hide the latency. */
        size_t n_calls = (n_panels + at_once - 1) / at_once, n = (n_panels + n_calls - 1) / n_calls;
        if (n == 4)
            dots_block(s, s_stride, q, keys, d, n_rows, 4 * V16_VECTORS);
        else if (n == 3)
            dots_block(s, s_stride, q, keys, d, n_rows, 3 * V16_VECTORS);
        else if (n == 2)
            dots_block(s, s_stride, q, keys, d, n_rows, 2 * V16_VECTORS);
        else
            dots_block(s, s_stride, q, keys, d, n_rows, V16_VECTORS);
        s += n * 16;
        keys += n * d * 16;
        n_panels -= n;
    }
}

/* acc[r] = acc[r] * alpha[r], then fma(p[r][k], values[k], acc[r]) for k ascending; n_vectors vectors of the d columns. */
SIMD_INLINE void values_block(float *acc_rows, size_t d, const float *alpha, const float *p, size_t p_stride,
                              const float *values, size_t n_keys, const int n_rows, const int n_vectors)
{
    vf acc[GROUP_ROWS][MAX_VECTORS];
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < n_vectors; v++)
            acc[r][v] = v_load(acc_rows + (size_t)r * d + v * SIMD_LANES) * v_set(alpha[r]);
    for (size_t k = 0; k < n_keys; k++) {
        vf value[MAX_VECTORS];
#pragma GCC unroll 8
        for (int v = 0; v < n_vectors; v++)
            value[v] = v_load(values + k * d + v * SIMD_LANES);
#pragma GCC unroll 8
        for (int r = 0; r < n_rows; r++) {
            vf x = v_set(p[(size_t)r * p_stride + k]);
#pragma GCC unroll 8
            for (int v = 0; v < n_vectors; v++)
                acc[r][v] = v_fma(x, value[v], acc[r][v]);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < n_vectors; v++)
            v_store(acc_rows + (size_t)r * d + v * SIMD_LANES, acc[r][v]);
}

/* The same for all d columns; n_rows is 1 or GROUP_ROWS. */
SIMD_INLINE void add_values(float *acc, size_t d, const float *alpha, const float *p, size_t p_stride,
                            const float *values, size_t n_keys, const int n_rows)
{
    const int wide = n_rows == 1 ? 8 : GROUP_VECTORS;
    size_t column = 0;
    for (; column + (size_t)wide * SIMD_LANES <= d; column += (size_t)wide * SIMD_LANES)
        values_block(acc + column, d, alpha, p, p_stride, values + column, n_keys, n_rows, wide);
    for (; column < d; column += 16)
        values_block(acc + column, d, alpha, p, p_stride, values + column, n_keys, n_rows, V16_VECTORS);
}

/* The online softmax of one tile: s[r][0, 16 n_panels), final scores (-inf where there is no key), become
 * probabilities; tile_max[r] is the largest score; max and sums move on, and alpha[r] = exp(old max - new max). */
SIMD_INLINE void softmax_tile(float *s, size_t s_stride, size_t n_panels, float *max, float *sums, float *alpha,
                              const float *tile_max, const int n_rows)
{
    vf old = v_load_n(max, (size_t)n_rows), new = v_max(v_load_n(tile_max, (size_t)n_rows), old);
    v_store_n(max, new, (size_t)n_rows);
    v_store_n(alpha, v_exp(old - new), (size_t)n_rows);
    for (int r = 0; r < n_rows; r++) {
        v16 sum = v16_load(sums + r * 16);
        vf m = v_set(max[r]), a = v_set(alpha[r]);
        float *row = s + (size_t)r * s_stride;
        for (int i = 0; i < V16_VECTORS; i++)
            sum.v[i] = sum.v[i] * a;
        for (size_t panel = 0; panel < n_panels; panel++)
            for (int i = 0; i < V16_VECTORS; i++) {
                float *at = row + panel * 16 + i * SIMD_LANES;
                vf p = v_exp(v_load(at) - m);
                v_store(at, p);
                sum.v[i] = sum.v[i] + p;
            }
        v16_store(sums + r * 16, sum);
    }
}

/* A finished row: out[d] = acc / sum, rounded as the run stores results. */
static inline void store_row(const struct run *run, float *out, const struct query_rows *rows, size_t r, size_t d)
{
    vf sum = v_set(v16_fold_add(v16_load(rows->sums + r * 16)));
    for (size_t j = 0; j < d; j += SIMD_LANES) {
        vf x = v_load(rows->acc + r * d + j) / sum;
        v_store(out + j, run->act == FATHOM_BF16 ? v_round_bf16(x) : x);
    }
}

/* One panel of keys, [d][16], from rows of d floats. */
static inline void pack_keys(float *panel, const float *const keys[16], size_t d)
{
    for (size_t j = 0; j < d; j++)
        for (size_t lane = 0; lane < 16; lane++)
            panel[j * 16 + lane] = keys[lane][j];
}

#endif
