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

/* ---- Hopper -------------------------------------------------------------------------------------------------------- */

#define FATHOM_HAS_WGMMA 1

void barrier_init(uint64_t *barrier, int n_arrivals);
void barrier_arrive(uint64_t *barrier);
void barrier_arrive_expect(uint64_t *barrier, uint32_t bytes);
void barrier_wait(uint64_t *barrier, uint32_t parity);
void named_barrier_sync(int id, int n_threads);
void named_barrier_arrive(int id, int n_threads);
static inline void barrier_init_fence() {}
static inline void fence_async_proxy() {}
static inline void prefetch_map(const void *) {}
template <int N> static inline void take_registers() {}
template <int N> static inline void give_registers() {}

/* at: innermost first, as many as the map has dimensions */
void emulator_copy_box(uint32_t shared, const void *map, const int *at, int n_dims, uint64_t *barrier);
static inline void copy_box_2d(uint32_t shared, const void *map, int x, int y, uint64_t *barrier)
{
    const int at[] = {x, y};
    emulator_copy_box(shared, map, at, 2, barrier);
}
static inline void copy_box_3d(uint32_t shared, const void *map, int x, int y, int z, uint64_t *barrier)
{
    const int at[] = {x, y, z};
    emulator_copy_box(shared, map, at, 3, barrier);
}
static inline void copy_box_4d(uint32_t shared, const void *map, int x, int y, int z, int w, uint64_t *barrier)
{
    const int at[] = {x, y, z, w};
    emulator_copy_box(shared, map, at, 4, barrier);
}

#endif
