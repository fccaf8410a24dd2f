/* The device: memory, the queue, and the way in from the library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/cuda/gpu.h"

/* Memory behind the arena comes in pieces of this many bytes. */
static const size_t PIECE = (size_t)32 << 20;

static enum fathom_status gpu_begin(struct device *d, struct fathom_err *err)
{
    return cuda_status(cudaSetDevice(((struct gpu *)d)->at.id), "choosing the CUDA device", err);
}

static enum fathom_status gpu_alloc(struct device *d, size_t bytes, const char *what, void **out,
                                    struct fathom_err *err)
{
    (void)d;
    cudaError_t error = cudaMalloc(out, bytes ? bytes : 1);
    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return fail(err, FATHOM_ENOMEM, "out of GPU memory: %zu bytes for %s", bytes, what);
    }
    return cuda_status(error, "allocating GPU memory", err);
}

static void gpu_release(struct device *d, void *memory)
{
    if (memory && !gpu_begin(d, NULL))
        cudaFree(memory);
}

static enum fathom_status gpu_clear(struct device *d, void *memory, size_t bytes, struct fathom_err *err)
{
    return cuda_status(cudaMemsetAsync(memory, 0, bytes, ((struct gpu *)d)->stream), "clearing GPU memory", err);
}

static enum fathom_status gpu_put(struct device *d, void *dst, const void *src, size_t bytes, struct fathom_err *err)
{
    cudaStream_t stream = ((struct gpu *)d)->stream;
    cudaError_t error = cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, stream);
    if (!error)
        error = cudaStreamSynchronize(stream);
    return cuda_status(error, "copying to the GPU", err);
}

static void *gpu_host_alloc(struct device *d, size_t bytes)
{
    void *memory = NULL;
    (void)d;
    if (cudaMallocHost(&memory, bytes ? bytes : 1)) {
        (void)cudaGetLastError();
        return NULL;
    }
    return memory;
}

static void gpu_host_release(struct device *d, void *memory)
{
    (void)d;
    if (memory)
        cudaFreeHost(memory);
}

/* ---- the arena's memory ---------------------------------------------------------------------------------------- */

/* The driver's functions for addresses without memory, found when they are first needed. */
struct address_functions {
    decltype(&cuMemAddressReserve) reserve;
    decltype(&cuMemAddressFree) free;
    decltype(&cuMemCreate) create;
    decltype(&cuMemMap) map;
    decltype(&cuMemUnmap) unmap;
    decltype(&cuMemSetAccess) set_access;
    decltype(&cuMemRelease) release;
};

static bool find_functions(struct address_functions *f)
{
    static const char *const names[] = {"cuMemAddressReserve", "cuMemAddressFree", "cuMemCreate", "cuMemMap",
                                        "cuMemUnmap",          "cuMemSetAccess",   "cuMemRelease"};
    void **slots[] = {(void **)&f->reserve, (void **)&f->free,       (void **)&f->create, (void **)&f->map,
                      (void **)&f->unmap,   (void **)&f->set_access, (void **)&f->release};
    for (int i = 0; i < 7; i++) {
        cudaDriverEntryPointQueryResult found;
        if (cudaGetDriverEntryPointByVersion(names[i], slots[i], 11000, cudaEnableDefault, &found) ||
            found != cudaDriverEntryPointSuccess)
            return false;
    }
    return true;
}

/* Puts memory behind the region up to at least `bytes`. */
static bool back_region(void *ctx, size_t bytes, size_t *backed_bytes)
{
    struct gpu *gpu = (struct gpu *)ctx;
    struct address_functions f;
    if (!find_functions(&f))
        return false;
    while (gpu->backed_bytes < bytes) {
        CUmemAllocationProp prop = {};
        prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        prop.location.id = gpu->at.id;
        CUmemAccessDesc access = {};
        access.location = prop.location;
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        CUmemGenericAllocationHandle handle;
        CUdeviceptr at = (CUdeviceptr)(gpu->region + gpu->backed_bytes);
        if (f.create(&handle, PIECE, &prop, 0))
            return false;
        CUresult mapped = f.map(at, PIECE, 0, handle, 0);
        f.release(handle); /* the mapping keeps it */
        if (mapped)
            return false;
        if (f.set_access(at, PIECE, &access, 1)) {
            f.unmap(at, PIECE);
            return false;
        }
        gpu->backed_bytes += PIECE;
    }
    *backed_bytes = gpu->backed_bytes;
    return true;
}

static enum fathom_status gpu_arena(struct device *d, struct arena *out, size_t limit_bytes, struct fathom_err *err)
{
    struct gpu *gpu = (struct gpu *)d;
    struct address_functions f;
    CUdeviceptr region = 0;
    size_t most = (gpu->device.memory_bytes + PIECE - 1) / PIECE * PIECE;
    size_t bytes = limit_bytes < most ? (limit_bytes + PIECE - 1) / PIECE * PIECE : most;
    if (!find_functions(&f) || f.reserve(&region, bytes, 0, 0, 0))
        return fail(err, FATHOM_EIO, "the CUDA driver gives no addresses for %zu bytes", bytes);
    gpu->region = (char *)region;
    gpu->region_bytes = bytes;
    arena_init_region(out, gpu->region, limit_bytes < bytes ? limit_bytes : bytes, back_region, gpu);
    return FATHOM_OK;
}

static void release_region(struct gpu *gpu)
{
    struct address_functions f;
    if (!gpu->region || !find_functions(&f))
        return;
    for (size_t at = 0; at < gpu->backed_bytes; at += PIECE)
        f.unmap((CUdeviceptr)(gpu->region + at), PIECE);
    f.free((CUdeviceptr)gpu->region, gpu->region_bytes);
}

/* ---- open and close -------------------------------------------------------------------------------------------- */

static void gpu_close(struct device *d)
{
    struct gpu *gpu = (struct gpu *)d;
    if (!gpu)
        return;
    if (!gpu_begin(d, NULL)) {
        if (gpu->stream) {
            cudaStreamSynchronize(gpu->stream);
            cudaStreamDestroy(gpu->stream);
        }
        release_region(gpu);
        cudaFree(gpu->fault);
        cudaFree(gpu->arrivals);
        cudaFreeHost(gpu->host_fault);
    }
    free(gpu);
}

static enum fathom_status find_device(int index, struct fathom_err *err)
{
    int n = 0;
    cudaError_t error = cudaGetDeviceCount(&n);
    if (error == cudaErrorInsufficientDriver)
        return fail(err, FATHOM_EUNSUPPORTED, "there is no CUDA driver, or it is too old for CUDA %d.%d",
                    CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    if (error || n == 0)
        return fail(err, FATHOM_EUNSUPPORTED, "there is no CUDA device: %s",
                    error ? cudaGetErrorString(error) : "none found");
    if (index >= n)
        return fail(err, FATHOM_EUNSUPPORTED, "there is no CUDA device %d: the last is %d", index, n - 1);
    return cuda_status(cudaSetDevice(index), "choosing the CUDA device", err);
}

static enum fathom_status prepare(struct gpu *gpu, struct fathom_err *err)
{
    cudaDeviceProp properties;
    enum fathom_status status = current_device(&gpu->at, err);
    if (!status)
        status = cuda_status(cudaGetDeviceProperties(&properties, gpu->at.id), "reading the CUDA device", err);
    if (!status)
        status = cuda_status(cudaStreamCreateWithFlags(&gpu->stream, cudaStreamNonBlocking), "making a stream", err);
    if (!status)
        status = cuda_status(cudaMalloc(&gpu->fault, sizeof *gpu->fault), "allocating GPU memory", err);
    if (!status)
        status = cuda_status(cudaMalloc(&gpu->arrivals, MAX_ARRIVALS * sizeof(int)), "allocating GPU memory", err);
    if (!status)
        status = gpu_clear(&gpu->device, gpu->arrivals, MAX_ARRIVALS * sizeof(int), err);
    if (!status)
        status = cuda_status(cudaMallocHost(&gpu->host_fault, sizeof *gpu->host_fault), "allocating memory", err);
    if (!status)
        status = gpu_clear(&gpu->device, gpu->fault, sizeof *gpu->fault, err);
    if (status)
        return status;
    snprintf(gpu->device.name, sizeof gpu->device.name, "%.127s", properties.name);
    gpu->device.memory_bytes = properties.totalGlobalMem;
    return FATHOM_OK;
}

extern "C" FATHOM_CUDA_API enum fathom_status fathom_cuda_open(int abi, const struct device_options *options,
                                                               struct device **out, struct fathom_err *err)
{
    *out = NULL;
    if (abi != DEVICE_ABI)
        return fail(err, FATHOM_EUNSUPPORTED, "the GPU back end is for another version of the library");
    enum fathom_status status = find_device(options->index, err);
    if (status)
        return status;
    struct gpu *gpu = (struct gpu *)calloc(1, sizeof *gpu);
    if (!gpu)
        return fail(err, FATHOM_ENOMEM, "out of memory: %zu bytes for the device", sizeof *gpu);
    gpu->exact = options->exact;
    gpu->device.kernels = &kernels_cuda;
    gpu->device.close = gpu_close;
    gpu->device.begin = gpu_begin;
    gpu->device.alloc = gpu_alloc;
    gpu->device.release = gpu_release;
    gpu->device.clear = gpu_clear;
    gpu->device.put = gpu_put;
    gpu->device.host_alloc = gpu_host_alloc;
    gpu->device.host_release = gpu_host_release;
    gpu->device.arena = gpu_arena;
    gpu->at.id = options->index;
    if ((status = prepare(gpu, err))) {
        gpu_close(&gpu->device);
        return status;
    }
    *out = &gpu->device;
    return FATHOM_OK;
}

void gpu_check(struct run *run, cudaError_t error, const char *op)
{
    if (error)
        run_fail(run, FATHOM_EIO, "%s: %s (%s)", op, cudaGetErrorString(error), cudaGetErrorName(error));
}
