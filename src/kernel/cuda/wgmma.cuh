/* wgmma: d [64, N] (+)= a [64, 16] b [16, N], by the 128 threads of a warpgroup. a is in registers, b in shared memory.
 * Thread t holds rows 16 (t/32) + (t%32)/4 and that plus 8; d[4 j + 0, 1] are columns 8 j + 2 (t%4) and the next of the
 * first row, d[4 j + 2, 3] of the second: the layout of mma_16x8x16, so p of one product is a of the next. */
#ifndef FATHOM_KERNEL_CUDA_WGMMA_CUH
#define FATHOM_KERNEL_CUDA_WGMMA_CUH

#include "kernel/cuda/common.cuh"

#ifdef FATHOM_HAS_WGMMA

/* b as a tile (tile_offset): groups of 8 rows are 1024 bytes apart. The same descriptor serves rows = N, columns = k
 * (B_ROWS_ARE_N) and rows = k, columns = N = 64 (B_ROWS_ARE_K). Starts: 32 bytes on for the next 16 columns, 2048 bytes
 * on for the next 16 rows. */
static constexpr int B_ROWS_ARE_N = 0, B_ROWS_ARE_K = 1;
__device__ __forceinline__ uint64_t wgmma_descriptor(uint32_t shared)
{
    return (uint64_t)((shared & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

/* Before the first product after registers of a or d were written. */
__device__ __forceinline__ void wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/* Until at most N committed groups are in flight. */
template <int N> __device__ __forceinline__ void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
/* Registers of a product in flight may be touched from here on and not before: the compiler does not know. */
template <int N> __device__ __forceinline__ void keep_order(float (&r)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+f"(r[i])::"memory");
}
template <int N> __device__ __forceinline__ void keep_order(uint32_t (&r)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+r"(r[i])::"memory");
}

template <typename T, int N, int B_ROWS> struct wgmma;

#define WGMMA_D32 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define WGMMA_D48 WGMMA_D32 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define WGMMA_D64 WGMMA_D48 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define WGMMA_D80 WGMMA_D64 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define WGMMA_D96 WGMMA_D80 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define WGMMA_D112 WGMMA_D96 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define WGMMA_D128 WGMMA_D112 ",%56,%57,%58,%59,%60,%61,%62,%63"

#define WGMMA_F4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define WGMMA_F8(i) WGMMA_F4(i), WGMMA_F4(i + 4)
#define WGMMA_F16(i) WGMMA_F8(i), WGMMA_F8(i + 8)
#define WGMMA_F32(i) WGMMA_F16(i), WGMMA_F16(i + 16)

#define WGMMA_R32 WGMMA_F16(0)
#define WGMMA_R48 WGMMA_F16(0), WGMMA_F8(16)
#define WGMMA_R64 WGMMA_F32(0)
#define WGMMA_R80 WGMMA_F32(0), WGMMA_F8(32)
#define WGMMA_R96 WGMMA_F32(0), WGMMA_F16(32)
#define WGMMA_R112 WGMMA_F32(0), WGMMA_F16(32), WGMMA_F8(48)
#define WGMMA_R128 WGMMA_F32(0), WGMMA_F32(32)

/* A0 .. TRANS: the numbers of the operands that follow d. */
#define WGMMA_DEFINE(T, NAME, N, B_ROWS, A0, A1, A2, A3, DESC, ADD, TRANS)                                             \
    template <> struct wgmma<T, N, B_ROWS> {                                                                           \
        static __device__ __forceinline__ void multiply(float (&d)[N / 2], const uint32_t *a, uint64_t b, int add)     \
        {                                                                                                              \
            asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" #ADD ", 0;\n"                                        \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." NAME "." NAME " {" WGMMA_D##N               \
                         "}, {%" #A0 ",%" #A1 ",%" #A2 ",%" #A3 "}, %" #DESC ", add, 1, 1, %" #TRANS ";\n}\n"          \
                         : WGMMA_R##N                                                                                  \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(B_ROWS));                 \
        }                                                                                                              \
    };
WGMMA_DEFINE(bf16, "bf16", 32, B_ROWS_ARE_N, 16, 17, 18, 19, 20, 21, 22)
WGMMA_DEFINE(f16, "f16", 32, B_ROWS_ARE_N, 16, 17, 18, 19, 20, 21, 22)
WGMMA_DEFINE(bf16, "bf16", 48, B_ROWS_ARE_N, 24, 25, 26, 27, 28, 29, 30)
WGMMA_DEFINE(f16, "f16", 48, B_ROWS_ARE_N, 24, 25, 26, 27, 28, 29, 30)
WGMMA_DEFINE(bf16, "bf16", 64, B_ROWS_ARE_N, 32, 33, 34, 35, 36, 37, 38)
WGMMA_DEFINE(bf16, "bf16", 64, B_ROWS_ARE_K, 32, 33, 34, 35, 36, 37, 38)
WGMMA_DEFINE(f16, "f16", 64, B_ROWS_ARE_N, 32, 33, 34, 35, 36, 37, 38)
WGMMA_DEFINE(f16, "f16", 64, B_ROWS_ARE_K, 32, 33, 34, 35, 36, 37, 38)
WGMMA_DEFINE(bf16, "bf16", 80, B_ROWS_ARE_N, 40, 41, 42, 43, 44, 45, 46)
WGMMA_DEFINE(f16, "f16", 80, B_ROWS_ARE_N, 40, 41, 42, 43, 44, 45, 46)
WGMMA_DEFINE(bf16, "bf16", 96, B_ROWS_ARE_N, 48, 49, 50, 51, 52, 53, 54)
WGMMA_DEFINE(f16, "f16", 96, B_ROWS_ARE_N, 48, 49, 50, 51, 52, 53, 54)
WGMMA_DEFINE(bf16, "bf16", 112, B_ROWS_ARE_N, 56, 57, 58, 59, 60, 61, 62)
WGMMA_DEFINE(f16, "f16", 112, B_ROWS_ARE_N, 56, 57, 58, 59, 60, 61, 62)
WGMMA_DEFINE(bf16, "bf16", 128, B_ROWS_ARE_N, 64, 65, 66, 67, 68, 69, 70)
WGMMA_DEFINE(f16, "f16", 128, B_ROWS_ARE_N, 64, 65, 66, 67, 68, 69, 70)

#undef WGMMA_DEFINE

/* d [64, 128] (+)= a [64, 16] b [16, 128] in bf16, both from shared memory: tiles with rows of k. */
__device__ __forceinline__ void wgmma_shared(float (&d)[64], uint64_t a, uint64_t b, int add)
{
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" WGMMA_D128
                 "}, %64, %65, add, 1, 1, 0, 0;\n}\n"
                 : WGMMA_R128
                 : "l"(a), "l"(b), "r"(add));
}

#endif

#endif
