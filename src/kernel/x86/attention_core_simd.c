#include "kernel/x86/attention_core.h"

#define MAX_VECTORS 8

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

/* n <= 4 panels of a group, when 16 lanes leave the registers for them, or of one row; otherwise one. */
SIMD_INLINE void dots_panels(float *s, size_t s_stride, const float *q, const float *keys, size_t d, const int n_rows,
                             size_t n)
{
    const bool wide = SIMD_LANES == 16 || n_rows == 1;
    if (wide && n == 4)
        dots_block(s, s_stride, q, keys, d, n_rows, 4 * V16_VECTORS);
    else if (wide && n == 3)
        dots_block(s, s_stride, q, keys, d, n_rows, 3 * V16_VECTORS);
    else if (wide && n == 2)
        dots_block(s, s_stride, q, keys, d, n_rows, 2 * V16_VECTORS);
    else
        dots_block(s, s_stride, q, keys, d, n_rows, V16_VECTORS);
}

void SIMD_NAME(attention_dots)(float *s, size_t s_stride, const float *q, const float *keys, size_t d, size_t n_rows,
                               size_t n_panels)
{
    const size_t at_once = SIMD_LANES == 16 || n_rows == 1 ? 4 : 1;
    while (n_panels > 0) {
        /* Five panels go as 3 + 2: a lone panel has too few chains to hide the latency. */
        size_t n_calls = (n_panels + at_once - 1) / at_once, n = (n_panels + n_calls - 1) / n_calls;
        if (n_rows == 1)
            dots_panels(s, s_stride, q, keys, d, 1, n);
        else
            dots_panels(s, s_stride, q, keys, d, GROUP_ROWS, n);
        s += n * 16;
        keys += n * d * 16;
        n_panels -= n;
    }
}

/* n_vectors vectors of the d columns. */
SIMD_INLINE void values_block(float *acc_rows, size_t d, const float *alpha, const float *p, size_t p_stride,
                              size_t tile_stride, const float *values, size_t n_keys, size_t n_tiles, const int n_rows,
                              const int n_vectors)
{
    vf acc[GROUP_ROWS][MAX_VECTORS];
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < n_vectors; v++)
            acc[r][v] = v_load(acc_rows + (size_t)r * d + v * SIMD_LANES);
    for (size_t t = 0; t < n_tiles; t++) {
#pragma GCC unroll 8
        for (int r = 0; r < n_rows; r++) {
            vf a = v_set(alpha[t * SIMD_LANES + ROW_LANE(r)]);
#pragma GCC unroll 8
            for (int v = 0; v < n_vectors; v++)
                acc[r][v] = acc[r][v] * a;
        }
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
        p += tile_stride;
        values += n_keys * d;
    }
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < n_vectors; v++)
            v_store(acc_rows + (size_t)r * d + v * SIMD_LANES, acc[r][v]);
}

SIMD_INLINE void values_rows(float *acc, size_t d, const float *alpha, const float *p, size_t p_stride,
                             size_t tile_stride, const float *values, size_t n_keys, size_t n_tiles, const int n_rows)
{
    const int n_vectors = n_rows == 1 ? 8 : SIMD_LANES == 16 ? 4 : 2;
    const size_t wide = (size_t)n_vectors * SIMD_LANES;
    size_t column = 0;
    for (; column + wide <= d; column += wide)
        values_block(acc + column, d, alpha, p, p_stride, tile_stride, values + column, n_keys, n_tiles, n_rows,
                     n_vectors);
    for (; column < d; column += 16)
        values_block(acc + column, d, alpha, p, p_stride, tile_stride, values + column, n_keys, n_tiles, n_rows,
                     V16_VECTORS);
}

void SIMD_NAME(attention_values)(float *acc, size_t d, const float *alpha, const float *p, size_t p_stride,
                                 size_t tile_stride, const float *values, size_t n_keys, size_t n_tiles, size_t n_rows)
{
    if (n_rows == 1)
        values_rows(acc, d, alpha, p, p_stride, tile_stride, values, n_keys, n_tiles, 1);
    else
        values_rows(acc, d, alpha, p, p_stride, tile_stride, values, n_keys, n_tiles, GROUP_ROWS);
}

/* Rows are loaded four floats at a time, rows four apart side by side in one register, and the 4 x 4 blocks inside its
 * 128-bit parts are transposed. */
void SIMD_NAME(attention_pack_panel)(float *panel, const float *const keys[16], size_t d)
{
    for (size_t j = 0; j < d; j += 4)
        for (size_t lane = 0; lane < 16; lane += SIMD_LANES) {
            const float *const *k = keys + lane;
            vf row[4];
            for (size_t i = 0; i < 4; i++) {
#if SIMD_LANES == 16
                row[i] = _mm512_castps128_ps512(_mm_loadu_ps(k[i] + j));
                row[i] = _mm512_mask_broadcast_f32x4(row[i], 0x00f0, _mm_loadu_ps(k[i + 4] + j));
                row[i] = _mm512_mask_broadcast_f32x4(row[i], 0x0f00, _mm_loadu_ps(k[i + 8] + j));
                row[i] = _mm512_mask_broadcast_f32x4(row[i], 0xf000, _mm_loadu_ps(k[i + 12] + j));
#else
                row[i] = _mm256_castps128_ps256(_mm_loadu_ps(k[i] + j));
                row[i] = _mm256_insertf128_ps(row[i], _mm_loadu_ps(k[i + 4] + j), 1);
#endif
            }
#if SIMD_LANES == 16
            vf a = _mm512_unpacklo_ps(row[0], row[1]), b = _mm512_unpackhi_ps(row[0], row[1]);
            vf c = _mm512_unpacklo_ps(row[2], row[3]), e = _mm512_unpackhi_ps(row[2], row[3]);
            v_store(panel + j * 16, _mm512_shuffle_ps(a, c, 0x44));
            v_store(panel + (j + 1) * 16, _mm512_shuffle_ps(a, c, 0xee));
            v_store(panel + (j + 2) * 16, _mm512_shuffle_ps(b, e, 0x44));
            v_store(panel + (j + 3) * 16, _mm512_shuffle_ps(b, e, 0xee));
#else
            vf a = _mm256_unpacklo_ps(row[0], row[1]), b = _mm256_unpackhi_ps(row[0], row[1]);
            vf c = _mm256_unpacklo_ps(row[2], row[3]), e = _mm256_unpackhi_ps(row[2], row[3]);
            v_store(panel + j * 16 + lane, _mm256_shuffle_ps(a, c, 0x44));
            v_store(panel + (j + 1) * 16 + lane, _mm256_shuffle_ps(a, c, 0xee));
            v_store(panel + (j + 2) * 16 + lane, _mm256_shuffle_ps(b, e, 0x44));
            v_store(panel + (j + 3) * 16 + lane, _mm256_shuffle_ps(b, e, 0xee));
#endif
        }
}
