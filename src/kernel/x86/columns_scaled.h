/* Columns of FP8 and FP4 matrices and of their scales (kernel/tensor.h), for columns.h. */
#ifndef FATHOM_KERNEL_X86_COLUMNS_SCALED_H
#define FATHOM_KERNEL_X86_COLUMNS_SCALED_H

#include "base/fp8.h"
#include "kernel/tensor.h"
#include "kernel/x86/turn.h"

/* Rows of a matrix, as many as a call needs. Scales: as in struct tensor. */
struct column_rows {
    const char *p;
    size_t stride; /* in bytes */
    const uint8_t *scales;
    size_t scale_stride, scale_row;
};

/* Rows of w from `row` on. */
static inline struct column_rows column_rows(const struct tensor *w, size_t row)
{
    return (struct column_rows){.p = tensor_row(w, row),
                                .stride = dtype_bytes(w->dtype, w->stride[0]),
                                .scales = w->scales,
                                .scale_stride = w->scale_stride,
                                .scale_row = w->scale_row + row};
}

/* What a call leaves for the next, which is for the columns behind. */
struct column_state {
    vf scale;     /* of each row, in this block                                                  */
    bool is_wide; /* FP8: a scale is so large that it cannot be raised by 2^8                    */
    vi words[2];  /* FP4: the second half of the block's codes                                   */
    vi scales;    /* FP4: four e8m0 scales of each row                                           */
};

#define F4_SCALES 4 /* blocks whose scales are read at once */

/* Scale of each row for columns k .. k + 127. */
SIMD_INLINE void load_f8_scale(struct column_state *s, const struct column_rows *rows, size_t n_rows, size_t k)
{
    const uint8_t *p = rows->scales + k / F8_BLOCK;
    size_t first = rows->scale_row / F8_BLOCK, last = (rows->scale_row + n_rows - 1) / F8_BLOCK;
    uint8_t b = p[first * rows->scale_stride];
    s->is_wide = b > 119 && b < 255;
    s->scale = v_set(e8m0_to_f32(b));
    if (first == last)
        return;
    float lanes[SIMD_LANES];
    for (size_t i = 0; i < SIMD_LANES; i++) {
        size_t row = i < n_rows ? (rows->scale_row + i) / F8_BLOCK : first;
        b = p[row * rows->scale_stride];
        s->is_wide |= b > 119 && b < 255;
        lanes[i] = e8m0_to_f32(b);
    }
    s->scale = v_load(lanes);
}

/* Scales of each row for up to four blocks from column k on, a byte each. */
SIMD_INLINE void load_f4_scales(struct column_state *s, const struct column_rows *rows, size_t n_rows, size_t k,
                                size_t n_blocks)
{
    uint32_t words[SIMD_LANES] = {0};
    const uint8_t *p = rows->scales + rows->scale_row * rows->scale_stride + k / F4_BLOCK;
    if (n_blocks == F4_SCALES && n_rows == SIMD_LANES && rows->scale_stride < 1 << 24) {
#if SIMD_LANES == 16
        const vi lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        s->scales = _mm512_i32gather_epi32(_mm512_mullo_epi32(lane, v_set_i((int)rows->scale_stride)), p, 1);
#else
        const vi lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        s->scales =
            _mm256_i32gather_epi32((const int *)p, _mm256_mullo_epi32(lane, v_set_i((int)rows->scale_stride)), 1);
#endif
        return;
    }
    for (size_t i = 0; i < n_rows; i++)
        __builtin_memcpy(&words[i], p + i * rows->scale_stride, n_blocks);
    s->scales = v_bits(v_load((const float *)words));
}

/* Float from the e8m0 in the low byte of each word: both 0 and 255 have their highest mantissa bit set. */
SIMD_INLINE vf e8m0_words_to_f32(vi b)
{
    b = v_and_i(b, v_set_i(0xff));
    vi is_end = v_shr(v_sub_i(v_and_i(v_add_i(b, v_set_i(1)), v_set_i(0xfe)), v_set_i(1)), 31);
    return v_from_bits(v_or_i(v_shl(b, 23), v_shl(is_end, 22)));
}

/* (x & mask) | set */
SIMD_INLINE vi v_and_or(vi x, vi mask, vi set)
{
#if SIMD_LANES == 16
    return _mm512_ternarylogic_epi32(x, mask, set, 0xea);
#else
    return v_or_i(v_and_i(x, mask), set);
#endif
}

/* Whether any of 4 words' bytes is an e4m3 code that is no normal number: zero, a subnormal or NaN. */
SIMD_INLINE bool any_odd_e4m3(const vi word[4])
{
    const vi magnitude = v_set_i(0x7f7f7f7f), least = v_set_i(0x08080808);
    vi from[4]; /* 0 .. 0x76 for normal numbers, more for all others */
#if SIMD_LANES == 16
    UNROLL for (size_t j = 0; j < 4; j++) from[j] = _mm512_sub_epi8(v_and_i(word[j], magnitude), least);
    vi most = _mm512_max_epu8(_mm512_max_epu8(from[0], from[1]), _mm512_max_epu8(from[2], from[3]));
    return _mm512_cmpgt_epu8_mask(most, v_set_i(0x76767676)) != 0;
#else
    UNROLL for (size_t j = 0; j < 4; j++) from[j] = _mm256_sub_epi8(v_and_i(word[j], magnitude), least);
    vi most = _mm256_max_epu8(_mm256_max_epu8(from[0], from[1]), _mm256_max_epu8(from[2], from[3]));
    vi same = _mm256_cmpeq_epi8(_mm256_min_epu8(most, v_set_i(0x76767676)), most);
    return _mm256_movemask_epi8(same) != -1;
#endif
}

/* Sign, exponent and mantissa of the four codes of each word where a float has them; the other bits are anything. */
SIMD_INLINE void place_e4m3(vi out[4], vi word)
{
#if SIMD_LANES == 16
    vi odd = _mm512_srai_epi16(word, 4), even = _mm512_srai_epi16(_mm512_slli_epi16(word, 8), 4);
#else
    vi odd = _mm256_srai_epi16(word, 4), even = _mm256_srai_epi16(_mm256_slli_epi16(word, 8), 4);
#endif
    out[0] = v_shl(even, 16), out[1] = v_shl(odd, 16), out[2] = even, out[3] = odd;
}

/* 2^-8 times the value of a normal number: with the upper exponent bits of a float, all exponents but 0 mean the same. */
SIMD_INLINE vf normal_e4m3(vi placed)
{
    return v_from_bits(v_and_or(placed, v_set_i((int)0x87f00000), v_set_i(0x38000000)));
}

/* The same of any code: what exponent 0 means is reached from there by min. Nothing subnormal is multiplied, which would
 * cost the processor a hundred cycles. */
SIMD_INLINE vf any_e4m3(vi placed)
{
    const vi bits = v_set_i(0x07f00000);
    vi code = v_and_i(placed, bits);
    vf normal = v_from_bits(v_or_i(code, v_set_i(0x38000000)));
    vf x = v_min(normal, v_fma(v_set(2.0f), normal, v_set(-0x1p-14f)));
    vf y = v_from_bits(v_and_or(placed, v_set_i((int)0x80000000), v_bits(x)));
#if SIMD_LANES == 16
    return v_select(_mm512_cmpeq_epi32_mask(code, bits), v_set(NAN), y);
#else
    return v_select(_mm256_cmpeq_epi32(code, bits), v_set(NAN), y);
#endif
}

/* 2^-8 times the codes of columns k = 0..15 of e4m3 rows. */
SIMD_INLINE void codes_f8(vf out[16], const char *p, size_t stride)
{
    vi word[4], placed[4];
    columns_i32(word, p, stride);
    if (__builtin_expect(any_odd_e4m3(word), 0)) {
        UNROLL for (size_t j = 0; j < 4; j++)
        {
            place_e4m3(placed, word[j]);
            UNROLL for (size_t i = 0; i < 4; i++) out[4 * j + i] = any_e4m3(placed[i]);
        }
        return;
    }
    UNROLL for (size_t j = 0; j < 4; j++)
    {
        place_e4m3(placed, word[j]);
        UNROLL for (size_t i = 0; i < 4; i++) out[4 * j + i] = normal_e4m3(placed[i]);
    }
}

/* Columns k = 0..15 of e4m3 rows times the scale of each row. */
SIMD_INLINE void columns_f8(vf out[16], const char *p, size_t stride, const struct column_state *s)
{
    codes_f8(out, p, stride);
    vf scale = s->scale;
    if (__builtin_expect(s->is_wide, 0))
        UNROLL for (size_t j = 0; j < 16; j++) out[j] = out[j] * v_set(256.0f);
    else
        scale = scale * v_set(256.0f);
    UNROLL for (size_t j = 0; j < 16; j++) out[j] = out[j] * scale;
}

/* The e2m1 in the low four bits of each word. */
SIMD_INLINE vf e2m1_words(vi word)
{
#if SIMD_LANES == 16
    const vf values = _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f, -0.5f, -1.0f, -1.5f, -2.0f,
                                     -3.0f, -4.0f, -6.0f);
    return _mm512_permutexvar_ps(word, values);
#else
    const vf values = _mm256_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f);
    vi sign = v_and_i(v_shl(word, 28), v_set_i((int)0x80000000));
    return v_from_bits(v_xor_i(v_bits(_mm256_permutevar8x32_ps(values, word)), sign));
#endif
}

/* The codes of columns k .. k + 15 of e2m1 rows, eight in a word: the block's words are turned for its first half. */
SIMD_INLINE void codes_f4(vf out[16], const char *p, size_t stride, size_t k, struct column_state *s)
{
    vi word[4];
    if (k % F4_BLOCK == 0) {
        columns_i32(word, p, stride);
        s->words[0] = word[2], s->words[1] = word[3];
    } else {
        word[0] = s->words[0], word[1] = s->words[1];
    }
    UNROLL for (size_t j = 0; j < 2; j++) UNROLL for (int i = 0; i < 8; i++) out[8 * j + (size_t)i] =
        e2m1_words(v_shr(word[j], 4 * i));
}

#endif
