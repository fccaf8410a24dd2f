/* How the tensor cores' products end: sums in registers to rows of y. */
#ifndef FATHOM_KERNEL_CUDA_GEMM_STORE_CUH
#define FATHOM_KERNEL_CUDA_GEMM_STORE_CUH

#include "kernel/cuda/common.cuh"
#include "kernel/cuda/exact.cuh"
#include "kernel/cuda/gemm.h"

/* Columns col and col + 1 of the row y from the sums s0 and s1: through bias and epilogue, or with SWIGLU as gates of the
 * sums up0 and up1. */
template <typename Y, bool SWIGLU>
__device__ __forceinline__ void store_pair(const gemm_arguments &a, Y *y, int col, float s0, float s1, float up0, float up1)
{
    float v[2] = {s0, s1};
    const float up[2] = {up0, up1};
#pragma unroll
    for (int e = 0; e < 2; e++) {
        if (SWIGLU) {
            v[e] = stored<bf16>(silu_f32(stored<bf16>(v[e]))) * stored<bf16>(up[e]);
        } else {
            if (a.bias)
                v[e] += to_float(((const bf16 *)a.bias)[col + e]);
            v[e] = finish<Y>(v[e], a.epilogue);
        }
    }
    if (sizeof(Y) == 2)
        *(uint32_t *)(y + col) = pack2<bf16>(v[0], v[1]);
    else
        *(float2 *)(y + col) = make_float2(v[0], v[1]);
}

#endif
