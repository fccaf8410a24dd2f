/* The part of CUDA's runtime and language that the GPU back end uses, on the processor: its kernels are compiled as C++ and
 * the threads of a block are fibers, one block after the other (emulator.cpp). Warps and blocks wait for each other where
 * the code says so and nowhere else; a block in which nobody can go on, and a barrier that not all threads reach, end the
 * program with a message. It is slow, and shows no race that its order of threads does not show. The device has compute
 * capability 8.0, or 9.0 when EMULATED_HOPPER is set. */
#ifndef EMULATOR_CUDA_RUNTIME_H
#define EMULATOR_CUDA_RUNTIME_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cuda.h>

#include <functional>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __grid_constant__
#define __launch_bounds__(...)
#define __CUDACC__ 1
#define CUDART_VERSION 13000

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
struct uint4 {
    uint32_t x, y, z, w;
} __attribute__((aligned(16)));
struct float2 {
    float x, y;
} __attribute__((aligned(8)));
static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }

extern dim3 threadIdx, blockIdx, blockDim, gridDim;

/* ---- what threads of a block do together ------------------------------------------------------------------------- */

void __syncthreads(void);
void __syncwarp(void);
/* Every live lane of the warp gives its bytes; all[lane] is where lane's lie until the next exchange. */
const void *const *emulator_exchange(const void *mine, size_t size);
unsigned char *emulator_shared(void);
void emulator_launch(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &kernel);

template <typename T> static inline T emulator_lane(T x, int from)
{
    const void *const *all = emulator_exchange(&x, sizeof x);
    T y = x;
    if (all[from])
        memcpy(&y, all[from], sizeof y);
    return y;
}
static inline int emulator_own_lane(void) { return (int)(threadIdx.x % 32); }

template <typename T> static inline T __shfl_xor_sync(unsigned, T x, int mask, int width = 32)
{
    const int lane = emulator_own_lane(), from = lane ^ mask;
    return emulator_lane(x, from / width == lane / width ? from : lane);
}
template <typename T> static inline T __shfl_down_sync(unsigned, T x, int delta, int width = 32)
{
    const int lane = emulator_own_lane();
    return emulator_lane(x, lane % width + delta < width ? lane + delta : lane);
}
template <typename T> static inline T __shfl_sync(unsigned, T x, int from, int width = 32)
{
    return emulator_lane(x, emulator_own_lane() / width * width + from % width);
}
static inline int __any_sync(unsigned, int x)
{
    const void *const *all = emulator_exchange(&x, sizeof x);
    int any = 0;
    for (int i = 0; i < 32; i++)
        any |= all[i] && *(const int *)all[i];
    return any;
}

static inline int atomicAdd(int *p, int x)
{
    int old = *p;
    *p += x;
    return old;
}
static inline int atomicOr(int *p, int x)
{
    int old = *p;
    *p |= x;
    return old;
}
static inline void __threadfence(void) {}
template <typename T> static inline T __ldg(const T *p) { return *p; }

/* ---- arithmetic: no contraction, so these are the operators ------------------------------------------------------ */

static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fsqrt_rn(float a) { return sqrtf(a); }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline float __int_as_float(int x)
{
    float f;
    memcpy(&f, &x, sizeof f);
    return f;
}
static inline float __uint_as_float(uint32_t x) { return __int_as_float((int)x); }
static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }

/* ---- the runtime ------------------------------------------------------------------------------------------------- */

typedef struct CUstream_st *cudaStream_t;
typedef enum {
    cudaSuccess,
    cudaErrorMemoryAllocation,
    cudaErrorInsufficientDriver,
    cudaErrorInvalidConfiguration,
    cudaErrorInvalidValue
} cudaError_t;
enum { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
enum { cudaStreamNonBlocking, cudaEnableDefault };
enum { cudaMemoryTypeDevice, cudaMemoryTypeManaged };
enum cudaDeviceAttr {
    cudaDevAttrComputeCapabilityMajor,
    cudaDevAttrComputeCapabilityMinor,
    cudaDevAttrMultiProcessorCount,
    cudaDevAttrMaxSharedMemoryPerBlockOptin
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess, cudaDriverEntryPointSymbolNotFound };
struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
};
struct cudaPointerAttributes {
    int type, device;
};

cudaError_t cudaGetDevice(int *id);
cudaError_t cudaSetDevice(int id);
cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int id);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int id);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *at, const void *p);
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version, int flags,
                                             cudaDriverEntryPointQueryResult *found);
cudaError_t emulator_malloc(void **p, size_t bytes);
template <typename T> static inline cudaError_t cudaMalloc(T **p, size_t bytes)
{
    return emulator_malloc((void **)p, bytes);
}
template <typename T> static inline cudaError_t cudaMallocHost(T **p, size_t bytes)
{
    return emulator_malloc((void **)p, bytes);
}
cudaError_t cudaFree(void *p);
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, cudaStream_t stream);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, int kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, int flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaGetLastError(void);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
template <typename F> static inline cudaError_t cudaFuncSetAttribute(F, cudaFuncAttribute, int bytes)
{
    return bytes <= 232448 ? cudaSuccess : cudaErrorInvalidValue;
}

#endif
