#ifndef EMULATOR_LAUNCH_CUH
#define EMULATOR_LAUNCH_CUH

#include <cuda_runtime.h>

#define DYNAMIC_SHARED(type, name) type *name = (type *)(void *)emulator_shared()

template <typename... P> struct launcher {
    void (*kernel)(P...);
    dim3 grid, block;
    size_t shared_bytes;

    void operator()(P... arguments) const
    {
        emulator_launch(grid, block, shared_bytes, [&] { kernel(arguments...); });
    }
};

template <typename... P>
launcher<P...> launch_on(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t)
{
    return {kernel, grid, block, shared_bytes};
}

#endif
