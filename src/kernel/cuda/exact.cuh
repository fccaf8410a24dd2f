/* Elementary functions and roundings with the bits of kernel/math.h and base/half.h, and activations in either dtype. */
#ifndef FATHOM_KERNEL_CUDA_EXACT_CUH
#define FATHOM_KERNEL_CUDA_EXACT_CUH

#include "kernel/cuda/launch.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include "kernel/cuda/gpu.h"

typedef __nv_bfloat16 bf16;
typedef __half f16;

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(bf16 x) { return __bfloat162float(x); }
__device__ __forceinline__ float to_float(f16 x) { return __half2float(x); }

template <typename T> __device__ __forceinline__ T from_float(float x);
template <> __device__ __forceinline__ float from_float<float>(float x) { return x; }
template <> __device__ __forceinline__ bf16 from_float<bf16>(float x) { return __float2bfloat16_rn(x); }

/* Eight bf16 that lie behind one another. */
__device__ __forceinline__ void unpack8(float (&v)[8], uint4 p)
{
    const uint32_t words[4] = {p.x, p.y, p.z, p.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        v[2 * i] = __uint_as_float(words[i] << 16);
        v[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
}

/* A float as an activation of T holds it. */
template <typename T> __device__ __forceinline__ float stored(float x) { return to_float(from_float<T>(x)); }

__device__ __forceinline__ float exp_f32(float x)
{
    if (x != x)
        return x;
    x = x < -104.0f ? -104.0f : x > 88.72f ? 88.72f : x;
    float n = rintf(__fmul_rn(x, 1.44269504f));
    float r = fmaf(n, -0.693359375f, x);
    r = fmaf(n, 2.12194440e-4f, r);
    float p = 1.9875691500e-4f;
    p = fmaf(p, r, 1.3981999507e-3f);
    p = fmaf(p, r, 8.3334519073e-3f);
    p = fmaf(p, r, 4.1665795894e-2f);
    p = fmaf(p, r, 1.6666665459e-1f);
    p = fmaf(p, r, 5.0000001201e-1f);
    p = __fadd_rn(fmaf(p, __fmul_rn(r, r), r), 1.0f);
    int i = (int)n, half = i >> 1;
    return __fmul_rn(__fmul_rn(p, __int_as_float((half + 127) << 23)), __int_as_float((i - half + 127) << 23));
}

__device__ __forceinline__ float silu_f32(float x) { return __fdiv_rn(x, __fadd_rn(1.0f, exp_f32(-x))); }
__device__ __forceinline__ float quick_gelu_f32(float x)
{
    return __fdiv_rn(x, __fadd_rn(1.0f, exp_f32(__fmul_rn(-1.702f, x))));
}
__device__ __forceinline__ float gelu_f32(float x)
{
    float u = fabsf(x), q = 5.88502362e-9f;
    q = fmaf(q, u, -2.35155565e-7f);
    q = fmaf(q, u, 3.81630741e-6f);
    q = fmaf(q, u, -3.17115035e-5f);
    q = fmaf(q, u, 1.24049725e-4f);
    q = fmaf(q, u, 1.36747764e-4f);
    q = fmaf(q, u, -0.00497258869f);
    q = fmaf(q, u, 0.0364495217f);
    q = fmaf(q, u, 0.318277091f);
    q = fmaf(q, u, 0.797887763f);
    float tail = __fmul_rn(0.5f, exp_f32(-__fmul_rn(q, u)));
    return __fmul_rn(x, x < 0.0f ? tail : __fsub_rn(1.0f, tail));
}

/* acc + bias was made by the caller: rounded, through the epilogue, and as stored. */
template <typename T> __device__ __forceinline__ float finish(float acc, enum epilogue epilogue)
{
    acc = stored<T>(acc);
    if (epilogue == EPILOGUE_GELU)
        return stored<T>(gelu_f32(acc));
    if (epilogue == EPILOGUE_QUICK_GELU)
        return stored<T>(quick_gelu_f32(acc));
    return acc;
}

/* The sum of 16 lanes' partial sums in all of them: lane i plus lane i + half, 16 -> 1. */
__device__ __forceinline__ float fold_lanes(float x)
{
    for (int half = 8; half > 0; half /= 2)
        x = __fadd_rn(x, __shfl_down_sync(0xffffffffu, x, half, 16));
    return __shfl_sync(0xffffffffu, x, 0, 16);
}

static inline unsigned blocks_of(size_t n, size_t size) { return (unsigned)((n + size - 1) / size); }

/* Calls f(T()) with the type of the run's activations, and g of a weight's dtype (f32 or bf16 on a device). */
template <typename F> static inline void with_act(const struct run *run, F f)
{
    if (run->dtype == DTYPE_BF16)
        f(bf16());
    else
        f(float());
}
template <typename F> static inline void with_dtype(enum dtype dtype, F f)
{
    if (dtype == DTYPE_BF16)
        f(bf16());
    else if (dtype == DTYPE_F16)
        f(f16());
    else
        f(float());
}

#endif
