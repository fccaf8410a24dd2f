/* The scalar definitions of the operations of kernel.h, one file each: plain loops that say what every other level must
 * give, bit for bit. Arguments as in struct kernels. */
#ifndef FATHOM_KERNEL_REF_REF_OPS_H
#define FATHOM_KERNEL_REF_REF_OPS_H

#include "base/half.h"
#include "kernel/kernel.h"

void upload_ref(struct run *run, struct tensor *y, const float *x);
void upload_ids_ref(struct run *run, int32_t *y, const int32_t *x, size_t n);
void download_ref(struct run *run, float *y, const struct tensor *x);
void copy_ref(struct run *run, struct tensor *y, const struct tensor *x);
void positions_ref(struct run *run, int32_t *pos, int32_t first, size_t n);
void resize_1d_ref(struct run *run, struct tensor *y, const struct tensor *x);
void resize_2d_ref(struct run *run, struct tensor *y, const struct tensor *x, size_t side, size_t g);
void linear_ref(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
                const struct tensor *bias, enum epilogue epilogue);
void swiglu_ref(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *gate,
                const struct tensor *up);
void conv2d_ref(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
                const struct tensor *bias, struct conv2d_shape shape);
void layernorm_ref(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
                   const struct tensor *bias, float eps);
void rmsnorm_ref(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w, float eps);
void rope_ref(struct run *run, struct tensor *x, size_t n_heads, const int32_t *pos, float theta);
void add_ref(struct run *run, struct tensor *x, const struct tensor *y);
void embed_ref(struct run *run, struct tensor *y, const struct tensor *table, const int32_t *ids);
void attention_relpos_ref(struct run *run, struct tensor *y, const struct tensor *qkv, const struct tensor *pad,
                          const struct tensor *rel_h, const struct tensor *rel_w, struct relpos_shape shape);
void attention_prefix_ref(struct run *run, struct tensor *y, const struct tensor *q, const struct tensor *k,
                          const struct tensor *v, size_t n_heads, size_t n_kv_heads, size_t n_seqs, size_t prefix);
void attention_causal_ref(struct run *run, struct tensor *y, const struct tensor *q, const struct tensor *k,
                          const struct tensor *v, struct kv_layer *kv, size_t n_heads, size_t pos);
void softmax_topk_ref(struct run *run, const struct tensor *logits, size_t top_k, int32_t *ids, float *weights);
void moe_ref(struct run *run, struct tensor *y, const struct tensor *x, const struct moe_weights *w);
void moe_chosen_ref(struct run *run, struct tensor *y, const struct tensor *x, const struct moe_weights *w,
                    const int32_t *ids, const float *weights);
void route_ref(struct run *run, const struct tensor *logits, const struct tensor *bias, const struct tensor *table,
               const int32_t *tokens, size_t top_k, float scale, int32_t *ids, float *weights);
void rope_pairs_ref(struct run *run, struct tensor *x, size_t n_heads, const int32_t *pos, const float *frequencies,
                    size_t n_pairs, bool inverse);
void hyper_split_ref(struct run *run, struct tensor *h, struct tensor *mix, const struct tensor *x,
                     const struct tensor *m, const struct hyper_weights *w, struct hyper_shape shape);
void hyper_merge_ref(struct run *run, struct tensor *x, const struct tensor *u, const struct tensor *mix,
                     size_t n_streams);
void compress_ref(struct run *run, struct tensor *y, const struct tensor *values, const struct tensor *scores,
                  const struct tensor *ape, struct compress_shape shape);
void index_scores_ref(struct run *run, struct tensor *scores, const struct tensor *q, const struct tensor *weights,
                      const struct index_keys *keys, size_t pos);
void index_topk_ref(struct run *run, int32_t *chosen, const struct tensor *scores, size_t ratio, size_t top_k,
                    size_t pos);
void attention_sparse_ref(struct run *run, struct tensor *y, const struct tensor *q, const struct tensor *sinks,
                          const struct sparse_keys *keys, size_t n_heads, size_t pos);

/* Element i of a vector or packed table in f32, f16 or bf16. */
static inline float value_f32(const struct tensor *t, size_t i)
{
    if (t->dtype == DTYPE_F32)
        return ((const float *)t->data)[i];
    uint16_t h = ((const uint16_t *)t->data)[i];
    return t->dtype == DTYPE_BF16 ? bf16_to_f32(h) : f16_to_f32(h);
}

/* A row of a weight matrix of any dtype, as float32. */
void weight_row_f32(float *out, const struct tensor *w, size_t row);

/* The top_k largest of n probabilities p, ties to the lower id, in descending order; p is overwritten. A NaN is recorded
 * in the run, with the row's number, and gives false. */
bool pick_largest(struct run *run, float *p, size_t n, size_t row, size_t top_k, int32_t *ids, float *weights);

/* What a float32 result is stored as. */
static inline float stored_f32(const struct run *run, float x) { return run->act == FATHOM_BF16 ? bf16_round(x) : x; }

/* Folds the 16 partial sums of a row: lane i plus lane i + half. */
static inline float fold_lanes(float lanes[16])
{
    for (size_t half = 8; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return lanes[0];
}

#endif
