#include "kernel/x86/peak_loops.h"
#include "kernel/x86/simd.h"

/* Enough independent chains to hide the latency of a multiply-add on two units, few enough for 16 registers. */
#define CHAINS 12

double SIMD_NAME(peak_fma_loop)(size_t n_rounds)
{
    vf acc[CHAINS], a = v_set(0.999f), b = v_set(1e-3f); /* unrolled below: acc must live in registers */
#pragma GCC unroll 16
    for (int i = 0; i < CHAINS; i++)
        acc[i] = v_set((float)i);
    for (size_t r = 0; r < n_rounds; r++) {
#pragma GCC unroll 16
        for (int i = 0; i < CHAINS; i++)
            acc[i] = v_fma(acc[i], a, b);
#pragma GCC unroll 16
        for (int i = 0; i < CHAINS; i++)
            __asm__ volatile("" : "+v"(acc[i])); /* keeps the chains apart and alive */
    }
    return 2.0 * CHAINS * SIMD_LANES * (double)n_rounds;
}

void SIMD_NAME(peak_read_loop)(const float *p, size_t n)
{
    vf sum[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        sum[i] = v_zero();
    for (size_t i = 0; i + 8 * SIMD_LANES <= n; i += 8 * SIMD_LANES) {
        __builtin_prefetch(p + i + 1024);
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++)
            sum[k] = sum[k] + v_load(p + i + (size_t)k * SIMD_LANES);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        __asm__ volatile("" : "+v"(sum[i]));
}
