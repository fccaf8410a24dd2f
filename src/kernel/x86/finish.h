/* What is done to finished sums: bias, activation, rounding; the same for every path that computes them. */
#ifndef FATHOM_KERNEL_X86_FINISH_H
#define FATHOM_KERNEL_X86_FINISH_H

#include "kernel/kernel.h"
#include "kernel/x86/simd.h"

struct finish {
    const struct tensor *bias; /* or NULL */
    enum epilogue epilogue;
    bool round; /* results are bfloat16 */
};

SIMD_INLINE vf v_stored(bool round, vf x) { return round ? v_round_bf16(x) : x; }

/* n <= SIMD_LANES values from element i of a bias. */
SIMD_INLINE vf load_bias(const struct tensor *bias, size_t i, size_t n)
{
    if (bias->dtype == DTYPE_BF16)
        return v_load_bf16_n((const uint16_t *)bias->data + i, n);
    return v_load_n((const float *)bias->data + i, n);
}

/* c[0..n) are the sums of outputs col, col + 1, ...; they become the results. */
SIMD_INLINE void finish_linear(const struct finish *f, size_t col, size_t n, float *c)
{
    for (size_t i = 0; i < n; i += SIMD_LANES) {
        size_t lanes = n - i < SIMD_LANES ? n - i : SIMD_LANES;
        vf v = v_load_n(c + i, lanes);
        if (f->bias)
            v = v + load_bias(f->bias, col + i, lanes);
        v = v_stored(f->round, v);
        if (f->epilogue == EPILOGUE_GELU)
            v = v_stored(f->round, v_gelu(v));
        else if (f->epilogue == EPILOGUE_QUICK_GELU)
            v = v_stored(f->round, v_quick_gelu(v));
        v_store_n(c + i, v, lanes);
    }
}

/* y[i] = silu(gate[i]) * up[i]; limit > 0: gate at most this, up between it and its negative, NaN passing through. */
SIMD_INLINE void finish_swiglu(bool round, float limit, size_t n, float *y, const float *gate, const float *up)
{
    for (size_t i = 0; i < n; i += SIMD_LANES) {
        size_t lanes = n - i < SIMD_LANES ? n - i : SIMD_LANES;
        vf g = v_stored(round, v_load_n(gate + i, lanes)), u = v_stored(round, v_load_n(up + i, lanes));
        if (limit > 0.0f) {
            g = v_min(v_set(limit), g);
            u = v_max(v_set(-limit), v_min(v_set(limit), u));
        }
        v_store_n(y + i, v_stored(round, v_stored(round, v_silu(g)) * u), lanes);
    }
}

#endif
