/* Attention on the GPU. Tensors hold device pointers; all of one call are bf16 or all f16, and sums, factors and the
 * softmax are f32. A call enqueues one kernel on `stream` and returns: it allocates nothing, waits for nothing, takes
 * no device memory and may be captured in a CUDA graph. Pointers must stay valid until the kernel has run.
 *
 * Both functions check dtype, shape, strides, 16-byte alignment and that every tensor lies on the current device:
 * FATHOM_EINVAL for a wrong argument, FATHOM_EUNSUPPORTED for a shape without a kernel, FATHOM_EIO when CUDA reports an
 * error (the message has its name). Safe to call from several threads. */
#ifndef FATHOM_KERNEL_CUDA_ATTENTION_H
#define FATHOM_KERNEL_CUDA_ATTENTION_H

#ifdef __cplusplus
extern "C" {
#endif

#include "base/err.h"
#include "kernel/kernel.h"

#define FATHOM_CUDA_API __attribute__((visibility("default")))

struct CUstream_st; /* what cudaStream_t points to */

/* Which kernels may be used; a test compares one level with the other on one device. */
enum cuda_level {
    CUDA_LEVEL_BEST,    /* wgmma where the device has it (compute capability 9.0) and a variant fits the shape */
    CUDA_LEVEL_GENERAL, /* mma.sync: any device of compute capability 8.0 or later, any shape                  */
};

/* attention_relpos of kernel.h: y [n_views*gh*gw, C], qkv [n_views*gh*gw, 3C] with packed rows; pad [3C], NULL when no
 * window reaches beyond the map; rel_h [2 kh - 1, d], rel_w [2 kw - 1, d] for a key grid of kh x kw (the window or the
 * map). C = n_heads * d; d a multiple of 8, at most 128. */
FATHOM_CUDA_API enum fathom_status cuda_attention_relpos(struct tensor *y, const struct tensor *qkv,
                                                         const struct tensor *pad, const struct tensor *rel_h,
                                                         const struct tensor *rel_w, struct relpos_shape shape,
                                                         enum cuda_level level, struct CUstream_st *stream,
                                                         struct fathom_err *err);

/* attention_prefix of kernel.h: q, y [n_seqs*S, n_heads*d], k, v [n_seqs*S, n_kv_heads*d], each with any row stride
 * of a multiple of 8 elements, so that q, k and v may be columns of one matrix. */
FATHOM_CUDA_API enum fathom_status cuda_attention_prefix(struct tensor *y, const struct tensor *q,
                                                         const struct tensor *k, const struct tensor *v, size_t n_heads,
                                                         size_t n_kv_heads, size_t n_seqs, size_t prefix,
                                                         enum cuda_level level, struct CUstream_st *stream,
                                                         struct fathom_err *err);

#ifdef __cplusplus
}
#endif

#endif
