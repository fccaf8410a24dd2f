/* Attention with the sums of kernel.h, for any shape that attention.h's kernels do not take. */
#ifndef FATHOM_KERNEL_CUDA_ATTENTION_EXACT_H
#define FATHOM_KERNEL_CUDA_ATTENTION_EXACT_H

#include "kernel/cuda/gpu.h"

/* Sequences of n queries: query i of a sequence is at position pos + i and sees the keys [0, max(prefix, pos + i + 1)) of
 * n_keys. Strides in elements. */
struct sequence_arguments {
    const void *q, *k, *v;
    void *y;
    size_t q_stride, y_stride, k_stride, v_stride; /* from one row to the next      */
    size_t k_head_stride, v_head_stride;           /* from one kv head to the next  */
    size_t k_sequence_stride, v_sequence_stride;   /* from one sequence to the next */
    int n_heads, n_kv_heads, d, n, n_keys, prefix, pos;
};
void attention_sequence_exact(struct run *run, const struct sequence_arguments *a, size_t n_seqs, const char *op);

/* As relpos_shape; kh x kw keys in each of n_wy x n_wx windows of a view, tables packed, pad in the activations' dtype. */
struct relpos_exact_arguments {
    const void *qkv, *pad, *rel_h, *rel_w;
    void *y;
    size_t qkv_stride, y_stride;
    int n_views, n_heads, d, gh, gw, kh, kw, n_wy, n_wx;
};
void attention_relpos_exact(struct run *run, const struct relpos_exact_arguments *a, enum dtype table_dtype);

#endif
