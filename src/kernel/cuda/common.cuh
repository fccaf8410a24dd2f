/* The instructions that the kernels need, under readable names. Device code only; PTX ISA 8.0 and later. */
#ifndef FATHOM_KERNEL_CUDA_COMMON_CUH
#define FATHOM_KERNEL_CUDA_COMMON_CUH

#include "kernel/cuda/launch.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

/* wgmma and the tensor copy engine: code for sm_90a alone. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define FATHOM_HAS_WGMMA 1
#endif

typedef __nv_bfloat16 bf16;
typedef __half f16;

static constexpr float LOG2_E = 1.4426950408889634f;
static constexpr unsigned FULL_WARP = 0xffffffffu;

/* ---- scalars ------------------------------------------------------------------------------------------------- */

/* 2^x, subnormal results flushed to zero, 2 ulp; 2^-inf = 0. */
__device__ __forceinline__ float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Two floats, rounded to nearest even, `low` in the lower half. */
template <typename T> __device__ __forceinline__ uint32_t pack2(float low, float high);
template <> __device__ __forceinline__ uint32_t pack2<bf16>(float low, float high)
{
    uint32_t p;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(p) : "f"(high), "f"(low));
    return p;
}
template <> __device__ __forceinline__ uint32_t pack2<f16>(float low, float high)
{
    uint32_t p;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(p) : "f"(high), "f"(low));
    return p;
}

template <typename T> __device__ __forceinline__ float2 unpack2(uint32_t p);
template <> __device__ __forceinline__ float2 unpack2<bf16>(uint32_t p)
{
    return make_float2(__uint_as_float(p << 16), __uint_as_float(p & 0xffff0000u));
}
template <> __device__ __forceinline__ float2 unpack2<f16>(uint32_t p)
{
    return __half22float2(*reinterpret_cast<__half2 *>(&p));
}

/* Over the four lanes that share a row of an accumulator. */
__device__ __forceinline__ float quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(FULL_WARP, x, 1));
    return fmaxf(x, __shfl_xor_sync(FULL_WARP, x, 2));
}
__device__ __forceinline__ float quad_sum(float x)
{
    x += __shfl_xor_sync(FULL_WARP, x, 1);
    return x + __shfl_xor_sync(FULL_WARP, x, 2);
}

/* ---- shared memory ------------------------------------------------------------------------------------------- */

__device__ __forceinline__ uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* A tile has rows of 64 16-bit elements, 128 bytes; its 16-byte chunk c of row r lies at chunk c ^ (r % 8), as the
 * tensor copy engine and wgmma have it in their 128-byte swizzle. Tiles start at multiples of 1024 bytes. */
static constexpr int TILE_ROW_BYTES = 128;
__device__ __forceinline__ uint32_t tile_offset(int row, int chunk)
{
    return (uint32_t)(row * TILE_ROW_BYTES + ((chunk ^ (row & 7)) << 4));
}

/* 16 bytes from global to shared memory; zeros when !valid (global is then not read). */
__device__ __forceinline__ void copy16_async(uint32_t shared, const void *global, bool valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(valid ? 16 : 0)
                 : "memory");
}
/* Closes a group of copies; waits until at most N groups are under way. */
__device__ __forceinline__ void copy_async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int N> __device__ __forceinline__ void copy_async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
__device__ __forceinline__ void copy_async_wait_all()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* Four 8 x 8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8. */
__device__ __forceinline__ void load_matrix4(uint32_t (&r)[4], uint32_t shared)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared)
                 : "memory");
}
__device__ __forceinline__ void load_matrix4_transposed(uint32_t (&r)[4], uint32_t shared)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared)
                 : "memory");
}

/* ---- mma.sync ------------------------------------------------------------------------------------------------ */

/* c [16, 8] += a [16, 16] b [16, 8]. Lane l holds c at rows l/4 (c[0], c[1]) and l/4 + 8 (c[2], c[3]), columns
 * 2 (l % 4) and the next; a and b as the instruction has them. */
template <typename T>
__device__ __forceinline__ void mma_16x8x16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);
template <>
__device__ __forceinline__ void mma_16x8x16<bf16>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ __forceinline__ void mma_16x8x16<f16>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

#ifdef FATHOM_HAS_WGMMA

/* ---- barriers in shared memory (mbarrier) -------------------------------------------------------------------- */

__device__ __forceinline__ void barrier_init(uint64_t *barrier, int n_arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(n_arrivals) : "memory");
}
/* Makes initialised barriers visible to the copy engine. */
__device__ __forceinline__ void barrier_init_fence()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void barrier_arrive(uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
__device__ __forceinline__ void barrier_arrive_expect(uint64_t *barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}
__device__ __forceinline__ void barrier_wait(uint64_t *barrier, uint32_t parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}\n" ::"r"(shared_address(barrier)),
                 "r"(parity)
                 : "memory");
}

/* Orders this thread's ordinary writes to shared memory before later reads by wgmma or the copy engine. */
__device__ __forceinline__ void fence_async_proxy()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* A hardware barrier among n_threads threads of the block, id 1..15. */
__device__ __forceinline__ void named_barrier_sync(int id, int n_threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n_threads) : "memory");
}
__device__ __forceinline__ void named_barrier_arrive(int id, int n_threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(n_threads) : "memory");
}

/* Registers a thread of this warpgroup may use from here on; all its warps execute it. The sum over the block's
 * warpgroups stays within the registers that the launch gave it. */
template <int N> __device__ __forceinline__ void take_registers()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N> __device__ __forceinline__ void give_registers()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

/* ---- the tensor copy engine ---------------------------------------------------------------------------------- */

/* A box of the tensor behind `map` (a CUtensorMap) to shared memory; its bytes are counted on `barrier`. Coordinates
 * innermost first; what lies outside of the tensor is filled with zeros. */
__device__ __forceinline__ void copy_box_2d(uint32_t shared, const void *map, int x, int y, uint64_t *barrier)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
        "[%2];" ::"r"(shared),
        "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y)
        : "memory");
}
__device__ __forceinline__ void copy_box_3d(uint32_t shared, const void *map, int x, int y, int z, uint64_t *barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
                 "[%1, {%3, %4, %5}], [%2];" ::"r"(shared),
                 "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z)
                 : "memory");
}
__device__ __forceinline__ void copy_box_4d(uint32_t shared, const void *map, int x, int y, int z, int w,
                                            uint64_t *barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
                 "[%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared),
                 "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w)
                 : "memory");
}
__device__ __forceinline__ void prefetch_map(const void *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

#endif

#endif
