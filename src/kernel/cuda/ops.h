/* The operations of kernel.h on the GPU, one file for each kind; arguments as in struct kernels. */
#ifndef FATHOM_KERNEL_CUDA_OPS_H
#define FATHOM_KERNEL_CUDA_OPS_H

#ifdef __cplusplus
extern "C" {
#endif

#include "kernel/kernel.h"

void upload_cuda(struct run *run, struct tensor *y, const float *x);
void upload_ids_cuda(struct run *run, int32_t *y, const int32_t *x, size_t n);
void download_cuda(struct run *run, float *y, const struct tensor *x);
void copy_cuda(struct run *run, struct tensor *y, const struct tensor *x);
void positions_cuda(struct run *run, int32_t *pos, int32_t first, size_t n);
void resize_1d_cuda(struct run *run, struct tensor *y, const struct tensor *x);
void resize_2d_cuda(struct run *run, struct tensor *y, const struct tensor *x, size_t side, size_t g);
void linear_cuda(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
                 const struct tensor *bias, enum epilogue epilogue);
void swiglu_cuda(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *gate,
                 const struct tensor *up);
void conv2d_cuda(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
                 const struct tensor *bias, struct conv2d_shape shape);
void layernorm_cuda(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
                    const struct tensor *bias, float eps);
void rmsnorm_cuda(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w, float eps);
void rope_cuda(struct run *run, struct tensor *x, size_t n_heads, const int32_t *pos, float theta);
void add_cuda(struct run *run, struct tensor *x, const struct tensor *y);
void embed_cuda(struct run *run, struct tensor *y, const struct tensor *table, const int32_t *ids);
void attention_relpos_cuda(struct run *run, struct tensor *y, const struct tensor *qkv, const struct tensor *pad,
                           const struct tensor *rel_h, const struct tensor *rel_w, struct relpos_shape shape);
void attention_prefix_cuda(struct run *run, struct tensor *y, const struct tensor *q, const struct tensor *k,
                           const struct tensor *v, size_t n_heads, size_t n_kv_heads, size_t n_seqs, size_t prefix);
void attention_causal_cuda(struct run *run, struct tensor *y, const struct tensor *q, const struct tensor *k,
                           const struct tensor *v, struct kv_layer *kv, size_t n_heads, size_t pos);
void softmax_topk_cuda(struct run *run, const struct tensor *logits, size_t top_k, int32_t *ids, float *weights);
void moe_cuda(struct run *run, struct tensor *y, const struct tensor *x, const struct moe_weights *w);

#ifdef __cplusplus
}
#endif

#endif
