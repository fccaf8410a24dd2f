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

/* q(u) = -ln(2 Phi(-u)) for u >= 0, Phi the normal distribution: q(u) = u (c0 + c1 u + ... + c9 u^9), fitted so that
 * the gelu below is within 1.5e-7 max(1, |x|) of the exact one; beyond u = 6 it only has to keep growing. */
static const float gelu_poly[10] = {0.797887763f,   0.318277091f,    0.0364495217f,  -0.00497258869f, 1.36747764e-4f,
                                    1.24049725e-4f, -3.17115035e-5f, 3.81630741e-6f, -2.35155565e-7f, 5.88502362e-9f};

/* x Phi(x) = 0.5 x (1 + erf(x / sqrt 2)) without the cancellation of the textbook form for negative x. */
static inline float gelu_f32(float x)
{
    float u = fabsf(x), q = gelu_poly[9];
    for (int i = 8; i >= 0; i--)
        q = fmaf(q, u, gelu_poly[i]);
    float tail = 0.5f * exp_f32(-(q * u));
    return x * (x < 0.0f ? tail : 1.0f - tail);
}

#endif
