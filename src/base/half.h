/* Scalar conversions between float32 and the narrow formats. All round to nearest, ties to even. */
#ifndef FATHOM_BASE_HALF_H
#define FATHOM_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t f32_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float f32_from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline float bf16_to_f32(uint16_t h) { return f32_from_bits((uint32_t)h << 16); }

/* NaN stays NaN (quiet, payload cut). */
static inline uint16_t bf16_from_f32(float x)
{
    uint32_t u = f32_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

static inline float bf16_round(float x) { return bf16_to_f32(bf16_from_f32(x)); }

/* IEEE binary16. */
static inline float f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = h >> 10 & 0x1fu, mantissa = h & 0x3ffu;
    if (exponent == 31)
        return f32_from_bits(sign | 0x7f800000u | mantissa << 13);
    if (exponent == 0) /* zero and subnormals: mantissa * 2^-24, exact in float32 */
        return f32_from_bits(sign | f32_bits((float)mantissa * 0x1p-24f));
    return f32_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t f16_from_f32(float x);

#endif
