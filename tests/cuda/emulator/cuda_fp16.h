#ifndef EMULATOR_CUDA_FP16_H
#define EMULATOR_CUDA_FP16_H

#include "base/half.h"

struct __half {
    uint16_t bits;
};
static inline float __half2float(__half x) { return f16_to_f32(x.bits); }

#endif
