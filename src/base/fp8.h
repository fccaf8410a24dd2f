/* The eight- and four-bit formats of DeepSeek-V4's published weights (spec deepseek-v4 §1.4), to float32. A weight is its
 * code's value times its block's scale; the product is exact unless it overflows. */
#ifndef FATHOM_BASE_FP8_H
#define FATHOM_BASE_FP8_H

#include "base/half.h"

/* E4M3FN: sign, 4 bits of exponent (bias 7), 3 of mantissa; subnormals are multiples of 2^-9; 0x7f and 0xff are NaN and
 * there are no infinities: the largest is 448. */
static inline float e4m3_to_f32(uint8_t b)
{
    uint32_t sign = (uint32_t)(b & 0x80u) << 24, exponent = b >> 3 & 0xfu, mantissa = b & 7u;
    if (exponent == 0)
        return f32_from_bits(sign | f32_bits((float)mantissa * 0x1p-9f));
    if (exponent == 15 && mantissa == 7)
        return f32_from_bits(sign | 0x7fc00000u);
    return f32_from_bits(sign | (exponent + 120) << 23 | mantissa << 20);
}

/* E2M1, the low four bits: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives. */
static inline float e2m1_to_f32(uint8_t code)
{
    uint32_t sign = (uint32_t)(code & 8u) << 28, exponent = code >> 1 & 3u, mantissa = code & 1u;
    if (exponent == 0)
        return f32_from_bits(sign | (mantissa ? 0x3f000000u : 0));
    return f32_from_bits(sign | (exponent + 126) << 23 | mantissa << 22);
}

/* E8M0: 2^(b - 127); 255 is NaN. */
static inline float e8m0_to_f32(uint8_t b)
{
    return f32_from_bits(b == 255 ? 0x7fc00000u : b == 0 ? 0x00400000u : (uint32_t)b << 23);
}

#endif
