#include "weights/q8_0.h"

#include <math.h>

#include "base/half.h"

#define F16_MAX 65504.0f

static void quantize_block(uint8_t *block, const float *x)
{
    float most = 0;
    for (int i = 0; i < Q8_0_BLOCK; i++)
        most = fmaxf(most, fabsf(x[i]));
    float d = fminf(most / 127, F16_MAX), inverse = d > 0 ? 1 / d : 0;
    uint16_t scale = f16_from_f32(d);
    block[0] = (uint8_t)scale;
    block[1] = (uint8_t)(scale >> 8);
    for (int i = 0; i < Q8_0_BLOCK; i++)
        block[2 + i] = (uint8_t)(int8_t)roundf(fmaxf(-127, fminf(127, x[i] * inverse)));
}

void q8_0_from_f32(uint8_t *dst, const float *src, size_t n)
{
    for (size_t i = 0; i < n; i += Q8_0_BLOCK)
        quantize_block(dst + i / Q8_0_BLOCK * Q8_0_BLOCK_BYTES, src + i);
}

void q8_0_to_f32(float *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t *block = src + i / Q8_0_BLOCK * Q8_0_BLOCK_BYTES;
        float d = f16_to_f32((uint16_t)(block[0] | block[1] << 8));
        dst[i] = d * (int8_t)block[2 + i % Q8_0_BLOCK];
    }
}
