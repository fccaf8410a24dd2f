#include "base/half.h"

uint16_t f16_from_f32(float x)
{
    uint32_t u = f32_bits(x), sign = u >> 16 & 0x8000u;
    u &= 0x7fffffffu;
    if (u > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (u >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (u < 0x38800000u) /* below 2^-14: adding 0.5 leaves the rounded multiple of 2^-24 in the low mantissa bits */
        return (uint16_t)(sign | (f32_bits(f32_from_bits(u) + 0.5f) - 0x3f000000u));
    return (uint16_t)(sign | (u + 0xc8000fffu + (u >> 13 & 1u)) >> 13);
}
