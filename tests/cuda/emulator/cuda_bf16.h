#ifndef EMULATOR_CUDA_BF16_H
#define EMULATOR_CUDA_BF16_H

#include "base/half.h"

struct __nv_bfloat16 {
    uint16_t bits;
};
static inline float __bfloat162float(__nv_bfloat16 x) { return bf16_to_f32(x.bits); }
static inline __nv_bfloat16 __float2bfloat16_rn(float x) { return {bf16_from_f32(x)}; }

#endif
