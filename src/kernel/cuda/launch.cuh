/* How kernels are launched and find their dynamic shared memory: launch_on(kernel, grid, block, shared_bytes, stream)(arguments).
 * In one place, because the emulator of tests/cuda has other ways. */
#ifndef FATHOM_KERNEL_CUDA_LAUNCH_CUH
#define FATHOM_KERNEL_CUDA_LAUNCH_CUH

#include <cuda_runtime.h>

#define DYNAMIC_SHARED(type, name) extern __shared__ __align__(1024) type name[]

template <typename... P> struct launcher {
    void (*kernel)(P...);
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;

    /* Errors are CUDA's last error, as after any launch. */
    void operator()(P... arguments) const { kernel<<<grid, block, shared_bytes, stream>>>(arguments...); }
};

template <typename... P>
launcher<P...> launch_on(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream)
{
    return {kernel, grid, block, shared_bytes, stream};
}

#endif
