/* The GPU as the operations' files see it. */
#ifndef FATHOM_KERNEL_CUDA_GPU_H
#define FATHOM_KERNEL_CUDA_GPU_H

#include <cuda_runtime.h>

#include "kernel/cuda/attention_check.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernel/device.h"

struct gpu {
    struct device device; /* first: a struct device * is a struct gpu *            */
    struct cuda_device at;
    cudaStream_t stream;
    bool exact;
    int *fault;      /* on the device: bit 0, a router's logits were NaN           */
    int *host_fault; /* where it is copied                                         */
    int *arrivals;   /* [MAX_ARRIVALS] on the device, zero between kernels         */
    /* The arena's addresses and how many of them have memory behind them. */
    char *region;
    size_t region_bytes, backed_bytes;
};

extern const struct kernels kernels_cuda;

#ifdef __cplusplus
}
#endif

static inline struct gpu *gpu_of(const struct run *run) { return (struct gpu *)run->device; }

/* Records what CUDA says of the last launch or call. */
void gpu_check(struct run *run, cudaError_t error, const char *op);

#define FAULT_ROUTER 1
#define MAX_ARRIVALS 256

#endif
