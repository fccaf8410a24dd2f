/* What the launchers of attention check and ask of CUDA on the host. */
#ifndef FATHOM_KERNEL_CUDA_ATTENTION_CHECK_H
#define FATHOM_KERNEL_CUDA_ATTENTION_CHECK_H

#include <cuda.h>
#include <cuda_runtime.h>

#include "kernel/cuda/attention.h"

struct cuda_device {
    int id;
    int major, minor;          /* compute capability                        */
    int n_mp;                  /* multiprocessors                           */
    size_t block_shared_bytes; /* dynamic shared memory a block may ask for */
};

/* The current device; FATHOM_EUNSUPPORTED below compute capability 8.0. */
enum fathom_status current_device(struct cuda_device *out, struct fathom_err *err);

/* FATHOM_OK, or FATHOM_EIO with what failed and CUDA's name of the error. */
enum fathom_status cuda_status(cudaError_t error, const char *what, struct fathom_err *err);

/* t is a matrix [rows, cols] (or, when rows is 1, a vector) of `dtype` on the device: unit column stride, 16-byte
 * aligned rows that do not overlap, and, when packed, no gap between them. */
enum fathom_status check_matrix(const char *name, const struct tensor *t, enum dtype dtype, size_t rows, size_t cols,
                                bool packed, const struct cuda_device *device, struct fathom_err *err);

/* A map of 16-bit elements for the copy engine: extents, strides in elements (of all dimensions but the innermost,
 * which is 1) and box, innermost first; box[0] is 64 and lands swizzled (tile_offset). n_dims 2..4. */
enum fathom_status tensor_map(CUtensorMap *out, const void *data, int n_dims, const size_t *extent,
                              const size_t *stride, const int *box, struct fathom_err *err);

#endif
