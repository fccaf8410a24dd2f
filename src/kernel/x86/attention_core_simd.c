#include "kernel/x86/attention_core.h"

#define MAX_VECTORS 8

SIMD_INLINE void dots_block(float *s, size_t s_stride, const float *q, const float *keys, size_t d, const int n_rows,
                            const int n_vectors)
{
    vf acc[GROUP_ROWS][MAX_VECTORS];
    UNROLL for (int r = 0; r < n_rows; r++)
    {
        UNROLL for (int v = 0; v < n_vectors; v++) { acc[r][v] = v_zero(); }
    }
    for (size_t j = 0; j < d; j++) {
        vf key[MAX_VECTORS];
        UNROLL for (int v = 0; v < n_vectors; v++)
        {
            key[v] = v_load(keys + (size_t)(v / V16_VECTORS) * d * 16 + j * 16 + v % V16_VECTORS * SIMD_LANES);
        }
        UNROLL for (int r = 0; r < n_rows; r++)
        {
            vf x = v_set(q[(size_t)r * d + j]);
            UNROLL for (int v = 0; v < n_vectors; v++) { acc[r][v] = v_fma(x, key[v], acc[r][v]); }
        }
    }
    UNROLL for (int r = 0; r < n_rows; r++)
    {
        UNROLL for (int v = 0; v < n_vectors; v++) { v_store(s + (size_t)r * s_stride + v * SIMD_LANES, acc[r][v]); }
    }
}

/* Each size is a function of its own: a compiler may join calls of one function that differ in a constant alone. */
#define DOTS(name, n_rows, n_panels)                                                                                   \
    static __attribute__((noinline)) void name(float *s, size_t s_stride, const float *q, const float *keys, size_t d) \
    {                                                                                                                  \
        dots_block(s, s_stride, q, keys, d, n_rows, n_panels *V16_VECTORS);                                            \
    }
typedef void dots_fn(float *s, size_t s_stride, const float *q, const float *keys, size_t d);

DOTS(dots_row_1, 1, 1)
DOTS(dots_row_2, 1, 2)
DOTS(dots_row_3, 1, 3)
DOTS(dots_row_4, 1, 4)
DOTS(dots_group_1, GROUP_ROWS, 1)
#if SIMD_LANES == 16
DOTS(dots_group_2, GROUP_ROWS, 2)
DOTS(dots_group_3, GROUP_ROWS, 3)
DOTS(dots_group_4, GROUP_ROWS, 4)
#endif

void SIMD_NAME(attention_dots)(float *s, size_t s_stride, const float *q, const float *keys, size_t d, size_t n_rows,
                               size_t n_panels)
{
    static dots_fn *const row[] = {dots_row_1, dots_row_2, dots_row_3, dots_row_4};
#if SIMD_LANES == 16
    static dots_fn *const group[] = {dots_group_1, dots_group_2, dots_group_3, dots_group_4};
#else
    static dots_fn *const group[] = {dots_group_1};
#endif
    dots_fn *const *fn = n_rows == 1 ? row : group;
    const size_t at_once = n_rows == 1 ? sizeof row / sizeof *row : sizeof group / sizeof *group;
    while (n_panels > 0) {
        /* Five panels go as 3 + 2: a lone panel has too few chains to hide the latency. */
        size_t n_calls = (n_panels + at_once - 1) / at_once, n = (n_panels + n_calls - 1) / n_calls;
        fn[n - 1](s, s_stride, q, keys, d);
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
    UNROLL for (int r = 0; r < n_rows; r++)
    {
        UNROLL for (int v = 0; v < n_vectors; v++) { acc[r][v] = v_load(acc_rows + (size_t)r * d + v * SIMD_LANES); }
    }
    for (size_t t = 0; t < n_tiles; t++) {
        UNROLL for (int r = 0; r < n_rows; r++)
        {
            vf a = v_set(alpha[t * SIMD_LANES + ROW_LANE(r)]);
            UNROLL for (int v = 0; v < n_vectors; v++) { acc[r][v] = acc[r][v] * a; }
        }
        for (size_t k = 0; k < n_keys; k++) {
            vf value[MAX_VECTORS];
            UNROLL for (int v = 0; v < n_vectors; v++) { value[v] = v_load(values + k * d + v * SIMD_LANES); }
            UNROLL for (int r = 0; r < n_rows; r++)
            {
                vf x = v_set(p[(size_t)r * p_stride + k]);
                UNROLL for (int v = 0; v < n_vectors; v++) { acc[r][v] = v_fma(x, value[v], acc[r][v]); }
            }
        }
        p += tile_stride;
        values += n_keys * d;
    }
    UNROLL for (int r = 0; r < n_rows; r++)
    {
        UNROLL for (int v = 0; v < n_vectors; v++) { v_store(acc_rows + (size_t)r * d + v * SIMD_LANES, acc[r][v]); }
    }
}

#define VALUES(name, n_rows, n_vectors)                                                                                \
    static __attribute__((noinline)) void name(float *acc, size_t d, const float *alpha, const float *p,               \
                                               size_t p_stride, size_t tile_stride, const float *values,               \
                                               size_t n_keys, size_t n_tiles)                                          \
    {                                                                                                                  \
        values_block(acc, d, alpha, p, p_stride, tile_stride, values, n_keys, n_tiles, n_rows, n_vectors);             \
    }
typedef void values_fn(float *acc, size_t d, const float *alpha, const float *p, size_t p_stride, size_t tile_stride,
                       const float *values, size_t n_keys, size_t n_tiles);

#define ROW_VECTORS 8
#define GROUP_VECTORS (SIMD_LANES == 16 ? 4 : 2)
VALUES(values_row_wide, 1, ROW_VECTORS)
VALUES(values_row_16, 1, V16_VECTORS)
VALUES(values_group_wide, GROUP_ROWS, GROUP_VECTORS)
VALUES(values_group_16, GROUP_ROWS, V16_VECTORS)

void SIMD_NAME(attention_values)(float *acc, size_t d, const float *alpha, const float *p, size_t p_stride,
                                 size_t tile_stride, const float *values, size_t n_keys, size_t n_tiles, size_t n_rows)
{
    values_fn *wide = n_rows == 1 ? values_row_wide : values_group_wide;
    values_fn *narrow = n_rows == 1 ? values_row_16 : values_group_16;
    size_t width = (size_t)(n_rows == 1 ? ROW_VECTORS : GROUP_VECTORS) * SIMD_LANES, column = 0;
    for (; column + width <= d; column += width)
        wide(acc + column, d, alpha, p, p_stride, tile_stride, values + column, n_keys, n_tiles);
    for (; column < d; column += 16)
        narrow(acc + column, d, alpha, p, p_stride, tile_stride, values + column, n_keys, n_tiles);
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
