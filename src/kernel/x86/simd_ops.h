/* The vector versions of the operations, one set of names for each instruction set. Arguments as in struct kernels. */
#ifndef FATHOM_KERNEL_X86_SIMD_OPS_H
#define FATHOM_KERNEL_X86_SIMD_OPS_H

#include "kernel/kernel.h"

extern const struct kernels kernels_avx2;
extern const struct kernels kernels_avx512;

#define SIMD_OPS(isa)                                                                                                  \
    void linear_##isa(struct run *, struct tensor *y, const struct tensor *x, const struct tensor *w,                  \
                      const struct tensor *bias, enum epilogue);                                                       \
    void swiglu_##isa(struct run *, struct tensor *y, const struct tensor *x, const struct tensor *gate,               \
                      const struct tensor *up);                                                                        \
    void conv2d_##isa(struct run *, struct tensor *y, const struct tensor *x, const struct tensor *w,                  \
                      const struct tensor *bias, struct conv2d_shape);                                                 \
    void layernorm_##isa(struct run *, struct tensor *y, const struct tensor *x, const struct tensor *w,               \
                         const struct tensor *bias, float eps);                                                        \
    void rmsnorm_##isa(struct run *, struct tensor *y, const struct tensor *x, const struct tensor *w, float eps);     \
    void rope_##isa(struct run *, struct tensor *x, size_t n_heads, const int32_t *pos, float theta);                  \
    void add_##isa(struct run *, struct tensor *x, const struct tensor *y);                                            \
    void embed_##isa(struct run *, struct tensor *y, const struct tensor *table, const int32_t *ids);                  \
    void attention_relpos_##isa(struct run *, struct tensor *y, const struct tensor *qkv, const struct tensor *pad,    \
                                const struct tensor *rel_h, const struct tensor *rel_w, struct relpos_shape);          \
    void attention_prefix_##isa(struct run *, struct tensor *y, const struct tensor *q, const struct tensor *k,        \
                                const struct tensor *v, size_t n_heads, size_t n_kv_heads, size_t n_seqs,              \
                                size_t prefix);                                                                        \
    void attention_causal_##isa(struct run *, struct tensor *y, const struct tensor *q, const struct tensor *k,        \
                                const struct tensor *v, struct kv_layer *kv, size_t n_heads, size_t pos);              \
    void softmax_topk_##isa(struct run *, const struct tensor *logits, size_t top_k, int32_t *ids, float *weights);    \
    void moe_##isa(struct run *, struct tensor *y, const struct tensor *x, const struct moe_weights *);                \
    void moe_chosen_##isa(struct run *, struct tensor *y, const struct tensor *x, const struct moe_weights *,          \
                          const int32_t *ids, const float *weights);                                                   \
    void route_##isa(struct run *, const struct tensor *logits, const struct tensor *bias, const struct tensor *table, \
                     const int32_t *tokens, size_t top_k, float scale, int32_t *ids, float *weights);                  \
    void rope_pairs_##isa(struct run *, struct tensor *x, size_t n_heads, const int32_t *pos,                          \
                          const float *frequencies, size_t n_pairs, bool inverse);                                     \
    void hyper_split_##isa(struct run *, struct tensor *h, struct tensor *mix, const struct tensor *x,                 \
                           const struct tensor *m, const struct hyper_weights *, struct hyper_shape);                  \
    void hyper_merge_##isa(struct run *, struct tensor *x, const struct tensor *u, const struct tensor *mix,           \
                           size_t n_streams);                                                                          \
    void compress_##isa(struct run *, struct tensor *y, const struct tensor *values, const struct tensor *scores,      \
                        const struct tensor *ape, struct compress_shape);                                              \
    void index_scores_##isa(struct run *, struct tensor *scores, const struct tensor *q, const struct tensor *weights, \
                            const struct index_keys *, size_t pos);                                                    \
    void index_topk_##isa(struct run *, int32_t *chosen, const struct tensor *scores, size_t ratio, size_t top_k,      \
                          size_t pos);                                                                                 \
    void attention_sparse_##isa(struct run *, struct tensor *y, const struct tensor *q, const struct tensor *sinks,    \
                                const struct sparse_keys *, size_t n_heads, size_t pos);

SIMD_OPS(avx2)
SIMD_OPS(avx512)

#endif
