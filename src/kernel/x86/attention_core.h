/* The inner loops that all attentions share: a group of queries against tiles of keys, as kernel.h defines it.
 *
 * keys: panels [panel][d][16] of 16 keys each; values: rows [key][d]; d a multiple of 16. A query's scores are one dot
 * product a lane, its probabilities and sums are 16 lanes by position in the tile, its accumulator is a row of d: no sum
 * ever crosses lanes or rows, so the bits do not depend on which queries share a group. */
#ifndef FATHOM_KERNEL_X86_ATTENTION_CORE_H
#define FATHOM_KERNEL_X86_ATTENTION_CORE_H

#include <math.h>

#include "kernel/kernel.h"
#include "kernel/x86/simd.h"

#define GROUP_ROWS 6                 /* with 4 vectors of 16 lanes, or 2 of 8, a group fills the registers */
#define BLOCK_ROWS (16 * GROUP_ROWS) /* queries that pass over the keys together                           */

/* Where group_max puts a row of a group; one vector holds a number for each of them. */
#define ROW_LANE(r) (SIMD_LANES == 16 && (r) >= 4 ? (r) + 4 : (r))

static inline size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

/* The state of queries, [rows] of everything, padded to whole groups: padding rows are zero queries whose results are
 * not stored. */
struct query_rows {
    float *q, *acc; /* [rows][d]             */
    float *sums;    /* [rows][16]            */
    float *max;     /* [groups][SIMD_LANES]  */
};

static inline size_t query_rows_floats(size_t n_rows, size_t d) { return n_rows * (2 * d + 16 + SIMD_LANES); }

/* Lays the rows into floats and clears the state. */
static inline struct query_rows query_rows_init(float *floats, size_t n_rows, size_t d)
{
    struct query_rows rows;
    rows.q = floats;
    rows.acc = rows.q + n_rows * d;
    rows.sums = rows.acc + n_rows * d;
    rows.max = rows.sums + n_rows * 16;
    for (size_t i = 0; i < n_rows * (d + 16); i += SIMD_LANES)
        v_store(rows.acc + i, v_zero());
    for (size_t i = 0; i < n_rows; i++)
        v_store(rows.max + i * SIMD_LANES, v_set(-INFINITY));
    return rows;
}

/* s[r][lane] = q[r] · key[lane] for the keys of n_panels panels. n_rows is 1 or GROUP_ROWS, here and below. */
void SIMD_NAME(attention_dots)(float *s, size_t s_stride, const float *q, const float *keys, size_t d, size_t n_rows,
                               size_t n_panels);

/* For n_tiles tiles of n_keys keys: acc[r] = acc[r] * alpha[r], then fma(p[r][k], value[k], acc[r]) for k ascending.
 * alpha [tile][SIMD_LANES], row r at ROW_LANE(r); a tile's p lie tile_stride behind the last one's, its values follow. */
void SIMD_NAME(attention_values)(float *acc, size_t d, const float *alpha, const float *p, size_t p_stride,
                                 size_t tile_stride, const float *values, size_t n_keys, size_t n_tiles, size_t n_rows);

/* One panel of keys from rows of d floats. */
void SIMD_NAME(attention_pack_panel)(float *panel, const float *const keys[16], size_t d);

/* The largest lane of each row, row r at ROW_LANE(r); for one row, everywhere. */
SIMD_INLINE vf group_max(const v16 *rows, const int n_rows)
{
    if (n_rows == 1)
        return v_set(v16_fold_max(rows[0]));
#if SIMD_LANES == 16
    vf pair[3], quad[2];
    for (int i = 0; i < 3; i++) /* two rows, each folded to two lanes of every four */
        pair[i] = v_max(_mm512_unpacklo_ps(rows[2 * i].v[0], rows[2 * i + 1].v[0]),
                        _mm512_unpackhi_ps(rows[2 * i].v[0], rows[2 * i + 1].v[0]));
    quad[0] = v_max(_mm512_shuffle_ps(pair[0], pair[1], 0x44), _mm512_shuffle_ps(pair[0], pair[1], 0xee));
    quad[1] = v_max(_mm512_shuffle_ps(pair[2], pair[2], 0x44), _mm512_shuffle_ps(pair[2], pair[2], 0xee));
    vf both = v_max(_mm512_shuffle_f32x4(quad[0], quad[1], 0x44), _mm512_shuffle_f32x4(quad[0], quad[1], 0xee));
    return v_max(both, _mm512_shuffle_f32x4(both, both, 0xb1));
#else
    vf pair[3], quad[2];
    for (int i = 0; i < 3; i++) {
        vf a = v_max(rows[2 * i].v[0], rows[2 * i].v[1]), b = v_max(rows[2 * i + 1].v[0], rows[2 * i + 1].v[1]);
        pair[i] = v_max(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    }
    quad[0] = v_max(_mm256_shuffle_ps(pair[0], pair[1], 0x44), _mm256_shuffle_ps(pair[0], pair[1], 0xee));
    quad[1] = v_max(_mm256_shuffle_ps(pair[2], pair[2], 0x44), _mm256_shuffle_ps(pair[2], pair[2], 0xee));
    return v_max(_mm256_permute2f128_ps(quad[0], quad[1], 0x20), _mm256_permute2f128_ps(quad[0], quad[1], 0x31));
#endif
}

/* The online softmax of one tile: s[r][0, 16 n_panels), final scores (-inf where there is no key), become
 * probabilities; tile_max are the largest scores as group_max gives them; max and sums of the group move on, and
 * alpha = exp(old max - new max). */
SIMD_INLINE void softmax_tile(float *s, size_t s_stride, size_t n_panels, float *max, float *sums, float *alpha,
                              vf tile_max, const int n_rows)
{
    vf old = v_load(max), new = v_max(tile_max, old);
    v_store(max, new);
    v_store(alpha, v_exp_nonpositive(old - new));
    UNROLL for (int r = 0; r < n_rows; r++)
    {
        v16 sum = v16_load(sums + r * 16);
        vf m = v_set(max[ROW_LANE(r)]), a = v_set(alpha[ROW_LANE(r)]);
        float *row = s + (size_t)r * s_stride;
        for (int i = 0; i < V16_VECTORS; i++)
            sum.v[i] = sum.v[i] * a;
        for (size_t panel = 0; panel < n_panels; panel++)
            for (int i = 0; i < V16_VECTORS; i++) {
                float *at = row + panel * 16 + i * SIMD_LANES;
                vf p = v_exp_nonpositive(v_load(at) - m);
                v_store(at, p);
                sum.v[i] = sum.v[i] + p;
            }
        v16_store(sums + r * 16, sum);
    }
}

/* A finished row: out[d] = acc * (1 / sum), rounded as the run stores results. */
SIMD_INLINE void store_row(const struct run *run, float *out, const float *acc, const float *sums, size_t d)
{
    vf inverse = v_set(1.0f / v16_fold_add(v16_load(sums)));
    for (size_t j = 0; j < d; j += SIMD_LANES) {
        vf x = v_load(acc + j) * inverse;
        v_store(out + j, run->act == FATHOM_BF16 ? v_round_bf16(x) : x);
    }
}

SIMD_INLINE void copy_row(float *to, const float *from, size_t d)
{
    for (size_t j = 0; j < d; j += SIMD_LANES)
        v_store(to + j, v_load(from + j));
}

SIMD_INLINE void clear_row(float *to, size_t d)
{
    for (size_t j = 0; j < d; j += SIMD_LANES)
        v_store(to + j, v_zero());
}

#endif
