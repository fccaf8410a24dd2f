/* A few columns of SIMD_LANES rows of weights, turned (turn.h) and widened to float32. */
#ifndef FATHOM_KERNEL_X86_COLUMNS_H
#define FATHOM_KERNEL_X86_COLUMNS_H

#include "kernel/x86/columns_scaled.h"

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
SIMD_INLINE size_t columns_per_call(enum dtype dtype)
{
    return dtype == DTYPE_F32 ? 4 : dtype == DTYPE_BF16 || dtype == DTYPE_F16 ? 8 : 16;
}

/* Bytes of each row that a call moves on. */
SIMD_INLINE size_t column_bytes(enum dtype dtype) { return dtype == DTYPE_F4_E2M1 ? 8 : 16; }

/* Columns at which a walk can begin: scales are read there. */
SIMD_INLINE size_t column_block(enum dtype dtype)
{
    return dtype == DTYPE_F8_E4M3 || dtype == DTYPE_F4_E2M1 ? F8_BLOCK : Q8_0_BLOCK;
}

SIMD_INLINE size_t column_offset(enum dtype dtype, size_t k)
{
    return dtype == DTYPE_F32       ? 4 * k
           : dtype == DTYPE_Q8_0    ? k / Q8_0_BLOCK * Q8_0_BLOCK_BYTES + 2 + k % Q8_0_BLOCK
           : dtype == DTYPE_F8_E4M3 ? k
           : dtype == DTYPE_F4_E2M1 ? k / 2
                                    : 2 * k;
}

/* The scales that columns k, k + 1, ... need and that are not part of the rows; n_k columns are left in the matrix. */
SIMD_INLINE void column_scales(enum dtype dtype, const struct column_rows *rows, size_t n_rows, size_t k, size_t n_k,
                               struct column_state *s)
{
    if (dtype == DTYPE_F8_E4M3 && k % F8_BLOCK == 0)
        load_f8_scale(s, rows, n_rows, k);
    if (dtype != DTYPE_F4_E2M1 || k % F4_BLOCK != 0)
        return;
    if (k % (F4_SCALES * F4_BLOCK) == 0)
        load_f4_scales(s, rows, n_rows, k, n_k < F4_SCALES * F4_BLOCK ? n_k / F4_BLOCK : F4_SCALES);
    else
        s->scales = v_shr(s->scales, 8);
    s->scale = e8m0_words_to_f32(s->scales);
}

/* Columns k, k + 1, ... of rows whose column k is at `at`. */
SIMD_INLINE void column_values(enum dtype dtype, vf out[COLUMNS_MAX], const char *at, size_t stride, size_t k,
                               struct column_state *s)
{
    switch (dtype) {
    case DTYPE_F32: columns_f32(out, at, stride); break;
    case DTYPE_BF16: columns_bf16(out, at, stride); break;
    case DTYPE_F16: columns_f16(out, at, stride); break;
    case DTYPE_F8_E4M3: columns_f8(out, at, stride, s); break;
    case DTYPE_F4_E2M1:
        codes_f4(out, at, stride, k, s);
        UNROLL for (size_t j = 0; j < 16; j++) out[j] = out[j] * s->scale;
        break;
    default:
        if (k % Q8_0_BLOCK == 0)
            s->scale = column_scale(at - 2, stride);
        columns_q8(out, at, stride, s->scale);
    }
}

/* Columns k, k + 1, ... of SIMD_LANES rows, of which n_k are left. k is a multiple of columns_per_call; a walk begins with
 * a multiple of column_block and is in ascending order, s being what the call before has left. */
SIMD_INLINE void columns(enum dtype dtype, vf out[COLUMNS_MAX], const struct column_rows *rows, size_t k, size_t n_k,
                         struct column_state *s)
{
    column_scales(dtype, rows, SIMD_LANES, k, n_k, s);
    column_values(dtype, out, rows->p + column_offset(dtype, k), rows->stride, k, s);
}

/* The same where there are only n_rows < SIMD_LANES rows or fewer columns than a call turns: nothing else is read, what is
 * missing is zero. */
static inline void columns_edge(enum dtype dtype, vf out[COLUMNS_MAX], const struct column_rows *rows, size_t k,
                                size_t n_rows, size_t n_k, struct column_state *s)
{
    /* As in memory: the scale and 32 int8, or 16 bytes. */
    char part[SIMD_LANES][2 + Q8_0_BLOCK] = {0};
    size_t n = n_k < columns_per_call(dtype) ? n_k : columns_per_call(dtype);
    size_t skip = dtype == DTYPE_Q8_0 ? 2 + k % Q8_0_BLOCK : 0;
    size_t bytes = skip + n * (dtype == DTYPE_F32 ? 4 : dtype == DTYPE_BF16 || dtype == DTYPE_F16 ? 2 : 1);
    if (dtype == DTYPE_F4_E2M1)
        bytes = k % F4_BLOCK == 0 ? F4_BLOCK / 2 : 0; /* a block at its first half, for both */
    const char *at = rows->p + column_offset(dtype, k) - skip;
    for (size_t i = 0; i < n_rows; i++)
        __builtin_memcpy(part[i], at + i * rows->stride, bytes);
    column_scales(dtype, rows, n_rows, k, n_k, s);
    column_values(dtype, out, part[0] + skip, sizeof part[0], k, s);
}

#endif
