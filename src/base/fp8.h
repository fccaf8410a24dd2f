/* The eight- and four-bit formats of DeepSeek-V4's published weights (spec deepseek-v4 §1.4), to and from float32. A weight is its
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

/* Nearest, ties to even; what is larger than 448 becomes 448, NaN 0x7f. */
static inline uint8_t e4m3_from_f32(float x)
{
    uint32_t bits = f32_bits(x), u = bits & 0x7fffffffu, sign = bits >> 24 & 0x80u;
    if (u > 0x7f800000u)
        return 0x7f;
    if (u >= 0x43e00000u) /* 448 */
        return (uint8_t)(sign | 0x7eu);
    if (u < 0x3c800000u) { /* 2^-6: multiples of 2^-9, which the sum's last bit counts */
        float on_2_14 = f32_from_bits(u) + 0x1p14f;
        return (uint8_t)(sign | (f32_bits(on_2_14) - 0x46800000u));
    }
    u += 0x7ffffu + (u >> 20 & 1u);
    return (uint8_t)(sign | ((u >> 20) - (120u << 3)));
}

/* Nearest, ties to the even code; what is larger than 6 becomes 6. x is not NaN. */
static inline uint8_t e2m1_from_f32(float x)
{
    uint32_t sign = f32_bits(x) >> 28 & 8u;
    float a = f32_from_bits(f32_bits(x) & 0x7fffffffu);
    uint32_t code = (a > 0.25f) + (a >= 0.75f) + (a > 1.25f) + (a >= 1.75f) + (a > 2.5f) + (a >= 3.5f) + (a > 5.0f);
    return (uint8_t)(sign | code);
}

/* The least power of two by which a block whose largest magnitude is amax can be divided to be at most `most` (448, 6), as
 * E8M0; amax is finite. */
static inline uint8_t e8m0_scale(float amax, float most)
{
    uint32_t u = f32_bits(amax / most), exponent = (u >> 23) + ((u & 0x7fffffu) != 0);
    return (uint8_t)(exponent > 254 ? 254 : exponent);
}

#endif
