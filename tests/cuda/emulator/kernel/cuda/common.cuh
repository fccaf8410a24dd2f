/* The instructions of src/kernel/cuda/common.cuh in C++. Copies into shared memory arrive when they are waited for and not
 * a moment earlier. */
#ifndef EMULATOR_COMMON_CUH
#define EMULATOR_COMMON_CUH

#include "kernel/cuda/launch.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef __nv_bfloat16 bf16;
typedef __half f16;

static constexpr float LOG2_E = 1.4426950408889634f;
static constexpr unsigned FULL_WARP = 0xffffffffu;

uint16_t emulator_f16(float x);

static inline float exp2_fast(float x)
{
    float y = exp2f(x);
    return y < 0x1p-126f ? 0.0f : y;
}

template <typename T> struct half_bits;
template <> struct half_bits<bf16> {
    static uint16_t narrow(float x) { return bf16_from_f32(x); }
    static float widen(uint16_t h) { return bf16_to_f32(h); }
};
template <> struct half_bits<f16> {
    static uint16_t narrow(float x) { return emulator_f16(x); }
    static float widen(uint16_t h) { return f16_to_f32(h); }
};
template <typename T> static inline uint32_t pack2(float low, float high)
{
    return half_bits<T>::narrow(low) | (uint32_t)half_bits<T>::narrow(high) << 16;
}
template <typename T> static inline float2 unpack2(uint32_t p)
{
    return {half_bits<T>::widen((uint16_t)p), half_bits<T>::widen((uint16_t)(p >> 16))};
}

static inline float quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(FULL_WARP, x, 1));
    return fmaxf(x, __shfl_xor_sync(FULL_WARP, x, 2));
}
static inline float quad_sum(float x)
{
    x += __shfl_xor_sync(FULL_WARP, x, 1);
    return x + __shfl_xor_sync(FULL_WARP, x, 2);
}

static inline uint32_t shared_address(const void *p) { return (uint32_t)((const unsigned char *)p - emulator_shared()); }

static constexpr int TILE_ROW_BYTES = 128;
static inline uint32_t tile_offset(int row, int chunk)
{
    return (uint32_t)(row * TILE_ROW_BYTES + ((chunk ^ (row & 7)) << 4));
}

void copy16_async(uint32_t shared, const void *global, bool valid);
void copy_async_commit(void);
void emulator_copy_wait(int n_groups);
template <int N> static inline void copy_async_wait() { emulator_copy_wait(N); }
static inline void copy_async_wait_all()
{
    copy_async_commit();
    emulator_copy_wait(0);
}

void load_matrix4(uint32_t (&r)[4], uint32_t shared);
void load_matrix4_transposed(uint32_t (&r)[4], uint32_t shared);
void emulator_mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, float (*widen)(uint16_t));
template <typename T> static inline void mma_16x8x16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    emulator_mma(c, a, b0, b1, half_bits<T>::widen);
}

#endif
