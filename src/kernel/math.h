/* Elementary functions as every back end computes them: each scalar here and its vector twin in x86/simd.h perform the
 * same operations in the same order, so all give the same bits. */
#ifndef FATHOM_KERNEL_MATH_H
#define FATHOM_KERNEL_MATH_H

#include <math.h>

#include "base/half.h"

/* e^x. x is clamped to [-104, 88.72]; n = round(x log2 e); r = x - n ln 2 in two parts; a polynomial of degree 6 in r;
 * scaled by 2^n in two steps so that subnormal results are right. Relative error below 2 ulp. NaN gives NaN. */
static inline float exp_f32(float x)
{
    if (x != x)
        return x;
    x = x < -104.0f ? -104.0f : x > 88.72f ? 88.72f : x;
    float n = rintf(x * 1.44269504f);
    float r = fmaf(n, -0.693359375f, x);
    r = fmaf(n, 2.12194440e-4f, r);
    float p = 1.9875691500e-4f;
    p = fmaf(p, r, 1.3981999507e-3f);
    p = fmaf(p, r, 8.3334519073e-3f);
    p = fmaf(p, r, 4.1665795894e-2f);
    p = fmaf(p, r, 1.6666665459e-1f);
    p = fmaf(p, r, 5.0000001201e-1f);
    p = fmaf(p, r * r, r) + 1.0f;
    int i = (int)n, half = i >> 1;
    return p * f32_from_bits((uint32_t)(half + 127) << 23) * f32_from_bits((uint32_t)(i - half + 127) << 23);
}

static inline float sigmoid_f32(float x) { return 1.0f / (1.0f + exp_f32(-x)); }
static inline float silu_f32(float x) { return x / (1.0f + exp_f32(-x)); }
static inline float quick_gelu_f32(float x) { return x / (1.0f + exp_f32(-1.702f * x)); }

/* erf(x), absolute error below 1e-7: for |x| < 1 an odd polynomial, otherwise 1 - exp(-q(|x|)) with the sign of x. */
float erf_f32(float x);
float gelu_f32(float x); /* 0.5 x (1 + erf(x / sqrt 2)) */

#endif
