/* The products of src/kernel/cuda/wgmma.cuh in C++. Each is done by its warp when it is issued; that the registers and the
 * shared memory of one in flight are left alone does not show here. */
#ifndef EMULATOR_WGMMA_CUH
#define EMULATOR_WGMMA_CUH

#include "kernel/cuda/common.cuh"

static constexpr int B_ROWS_ARE_N = 0, B_ROWS_ARE_K = 1;

/* The real one's fields: the address alone counts here. */
static inline uint64_t wgmma_descriptor(uint32_t shared) { return (uint64_t)((shared & 0x3ffff) >> 4); }
static inline void wgmma_fence() {}
static inline void wgmma_commit() {}
template <int N> static inline void wgmma_wait() {}
template <int N> static inline void keep_order(float (&)[N]) {}
template <int N> static inline void keep_order(uint32_t (&)[N]) {}

/* a: the warp's rows in registers, or NULL and then in shared memory behind `a_tile`. */
void emulator_wgmma(float *d, int n, const uint32_t *a, uint64_t a_tile, uint64_t b, int b_rows, int add,
                    float (*widen)(uint16_t));

template <typename T, int N, int B_ROWS> struct wgmma {
    static void multiply(float (&d)[N / 2], const uint32_t *a, uint64_t b, int add)
    {
        emulator_wgmma(d, N, a, 0, b, B_ROWS, add, half_bits<T>::widen);
    }
};
static inline void wgmma_shared(float (&d)[64], uint64_t a, uint64_t b, int add)
{
    emulator_wgmma(d, 128, nullptr, a, b, B_ROWS_ARE_N, add, half_bits<bf16>::widen);
}

#endif
