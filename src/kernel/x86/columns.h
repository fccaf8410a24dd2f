/* Weights are stored row by row, [out, in]; the kernels want, for one k, a vector over neighbouring outputs. These
 * functions read a few columns of SIMD_LANES rows and turn them: rows are loaded 16 bytes at a time, four rows to a
 * register of 16 lanes (two to one of 8), and 4 x 4 blocks are transposed inside the 128-bit parts. */
#ifndef FATHOM_KERNEL_X86_COLUMNS_H
#define FATHOM_KERNEL_X86_COLUMNS_H

#include "kernel/tensor.h"
#include "kernel/x86/simd.h"

#define COLUMN_BYTES 16 /* of each row, a call */

SIMD_INLINE __m128i load_16_bytes(const char *p) { return _mm_loadu_si128((const __m128i *)p); }

/* out[j]: 32-bit words j = 0..3 of the rows at p, p + stride, ... */
SIMD_INLINE void columns_i32(vi out[4], const char *p, size_t stride)
{
    vi r[4];
#if SIMD_LANES == 16
    const char *p4 = p + 4 * stride, *p8 = p + 8 * stride, *p12 = p + 12 * stride;
    UNROLL for (size_t j = 0; j < 4; j++)
    {
        r[j] = _mm512_castsi128_si512(load_16_bytes(p + j * stride));
        r[j] = _mm512_mask_broadcast_i32x4(r[j], 0x00f0, load_16_bytes(p4 + j * stride));
        r[j] = _mm512_mask_broadcast_i32x4(r[j], 0x0f00, load_16_bytes(p8 + j * stride));
        r[j] = _mm512_mask_broadcast_i32x4(r[j], 0xf000, load_16_bytes(p12 + j * stride));
    }
    vi a = _mm512_unpacklo_epi32(r[0], r[1]), b = _mm512_unpacklo_epi32(r[2], r[3]);
    vi c = _mm512_unpackhi_epi32(r[0], r[1]), d = _mm512_unpackhi_epi32(r[2], r[3]);
    out[0] = _mm512_unpacklo_epi64(a, b), out[1] = _mm512_unpackhi_epi64(a, b);
    out[2] = _mm512_unpacklo_epi64(c, d), out[3] = _mm512_unpackhi_epi64(c, d);
#else
    const char *p4 = p + 4 * stride;
    UNROLL for (size_t j = 0; j < 4; j++) r[j] = _mm256_inserti128_si256(
        _mm256_castsi128_si256(load_16_bytes(p + j * stride)), load_16_bytes(p4 + j * stride), 1);
    vi a = _mm256_unpacklo_epi32(r[0], r[1]), b = _mm256_unpacklo_epi32(r[2], r[3]);
    vi c = _mm256_unpackhi_epi32(r[0], r[1]), d = _mm256_unpackhi_epi32(r[2], r[3]);
    out[0] = _mm256_unpacklo_epi64(a, b), out[1] = _mm256_unpackhi_epi64(a, b);
    out[2] = _mm256_unpacklo_epi64(c, d), out[3] = _mm256_unpackhi_epi64(c, d);
#endif
}

/* Float from the f16 in the low half of each 32-bit word; the high half is zero. */
SIMD_INLINE vf f16_words_to_f32(vi x)
{
#if SIMD_LANES == 16
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(x));
#else
    return _mm256_cvtph_ps(_mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1)));
#endif
}

/* Columns k = 0..3 of f32 rows. */
SIMD_INLINE void columns_f32(vf out[4], const char *p, size_t stride)
{
    vi word[4];
    columns_i32(word, p, stride);
    UNROLL for (size_t j = 0; j < 4; j++) out[j] = v_from_bits(word[j]);
}

/* Columns k = 0..7 of bf16 rows. */
SIMD_INLINE void columns_bf16(vf out[8], const char *p, size_t stride)
{
    vi word[4];
    columns_i32(word, p, stride);
    UNROLL for (size_t j = 0; j < 4; j++)
    {
        out[2 * j] = v_from_bits(v_shl(word[j], 16));
        out[2 * j + 1] = v_from_bits(v_and_i(word[j], v_set_i(-65536)));
    }
}

/* Columns k = 0..7 of f16 rows. */
SIMD_INLINE void columns_f16(vf out[8], const char *p, size_t stride)
{
    vi word[4];
    columns_i32(word, p, stride);
    UNROLL for (size_t j = 0; j < 4; j++)
    {
        out[2 * j] = f16_words_to_f32(v_and_i(word[j], v_set_i(0xffff)));
        out[2 * j + 1] = f16_words_to_f32(v_shr(word[j], 16));
    }
}

/* 2^15 + the byte j of each 32-bit word, as float: the byte is put into the mantissa of 2^15, of which bit 8 counts 1. */
SIMD_INLINE vf byte_on_2_15(vi word, int j)
{
    const vi two_15 = v_set_i(0x47000000);
#if SIMD_LANES == 16
    const vi from = _mm512_set4_epi32(0x0c0c | j << 8, 0x0808 | j << 8, 0x0404 | j << 8, j << 8);
    return v_from_bits(_mm512_mask_shuffle_epi8(two_15, 0x2222222222222222u, word, from));
#else
    const __m128i from = _mm_set_epi32((int)0x80800080 | (12 + j) << 8, (int)0x80800080 | (8 + j) << 8,
                                       (int)0x80800080 | (4 + j) << 8, (int)0x80800080 | j << 8);
    return v_from_bits(v_or_i(_mm256_shuffle_epi8(word, _mm256_broadcastsi128_si256(from)), two_15));
#endif
}

/* Columns k = 0..15 of int8 rows times the scale of each row, as (2^15 + q + 128) scale - (2^15 + 128) scale: an f16
 * times an int8, and times 2^15 + 128, is exact in float32, and so is this. A scale that is not finite gives NaN. */
SIMD_INLINE void columns_q8(vf out[16], const char *p, size_t stride, vf scale)
{
    const vf offset = v_set(-32768.0f - 128.0f) * scale;
    vi word[4];
    columns_i32(word, p, stride);
    UNROLL for (size_t j = 0; j < 4; j++)
    {
        vi q = v_xor_i(word[j], v_set_i((int)0x80808080)); /* int8 + 128 as a byte */
        UNROLL for (int i = 0; i < 4; i++) out[4 * j + i] = v_fma(byte_on_2_15(q, i), scale, offset);
    }
}

/* The f16 at the start of each row, as float; 16 bytes of the row are read. */
SIMD_INLINE vf column_scale(const char *p, size_t stride)
{
    vi word[4];
    columns_i32(word, p, stride);
    return f16_words_to_f32(v_and_i(word[0], v_set_i(0xffff)));
}

/* ---- any dtype: with a constant dtype all of this folds to one of the above ------------------------------------- */

#define COLUMNS_MAX 16

/* Columns that one call turns. */
SIMD_INLINE size_t columns_per_call(enum dtype dtype) { return dtype == DTYPE_F32 ? 4 : dtype == DTYPE_Q8_0 ? 16 : 8; }

SIMD_INLINE size_t column_offset(enum dtype dtype, size_t k)
{
    return dtype == DTYPE_F32    ? 4 * k
           : dtype == DTYPE_Q8_0 ? k / Q8_0_BLOCK * Q8_0_BLOCK_BYTES + 2 + k % Q8_0_BLOCK
                                 : 2 * k;
}

/* Columns k, k + 1, ... of SIMD_LANES rows at p. k is a multiple of columns_per_call and is walked in ascending order:
 * *scale keeps the scales of a Q8_0 block between its two calls. */
SIMD_INLINE void columns(enum dtype dtype, vf out[COLUMNS_MAX], const char *p, size_t stride, size_t k, vf *scale)
{
    const char *at = p + column_offset(dtype, k);
    switch (dtype) {
    case DTYPE_F32: columns_f32(out, at, stride); break;
    case DTYPE_BF16: columns_bf16(out, at, stride); break;
    case DTYPE_F16: columns_f16(out, at, stride); break;
    default:
        if (k % Q8_0_BLOCK == 0)
            *scale = column_scale(at - 2, stride);
        columns_q8(out, at, stride, *scale);
    }
}

/* The same where there are only n_rows < SIMD_LANES rows or n_k < columns_per_call columns: nothing else is read, what
 * is missing is zero. */
static inline void columns_edge(enum dtype dtype, vf out[COLUMNS_MAX], const char *p, size_t stride, size_t k,
                                size_t n_rows, size_t n_k, vf *scale)
{
    /* As in memory: the scale and 32 int8, or 16 bytes of one column or more. */
    char part[SIMD_LANES][2 + Q8_0_BLOCK] = {0};
    size_t width = dtype == DTYPE_F32 ? 4 : dtype == DTYPE_Q8_0 ? 1 : 2;
    size_t skip = dtype == DTYPE_Q8_0 ? 2 + k % Q8_0_BLOCK : 0;
    const char *at = p + column_offset(dtype, k) - skip;
    for (size_t i = 0; i < n_rows; i++)
        __builtin_memcpy(part[i], at + i * stride, skip + n_k * width);
    columns(dtype, out, part[0], sizeof part[0], dtype == DTYPE_Q8_0 ? k % Q8_0_BLOCK : 0, scale);
}

#endif
