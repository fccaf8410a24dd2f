/* DeepSeek-V4, the language model (spec deepseek-v4 §2). */
#ifndef FATHOM_MODELS_DEEPSEEK_V4_H
#define FATHOM_MODELS_DEEPSEEK_V4_H

#include "nn/v4_compressor.h"
#include "nn/v4_state.h"
#include "weights/config_v4.h"

struct v4_attention {
    size_t ratio;               /* 0: window only; 4: CSA; any other: HCA                      */
    struct tensor q_a, q_norm;  /* [q_rank, dim], [q_rank]                                     */
    struct tensor q_b;          /* [n_heads * head_dim, q_rank]                                */
    struct tensor kv, kv_norm;  /* [head_dim, dim], [head_dim]: one key, also the value        */
    struct tensor sinks;        /* [n_heads]                                                   */
    struct tensor o_a;          /* [o_groups * o_rank, n_heads * head_dim / o_groups]          */
    struct tensor o_b;          /* [dim, o_groups * o_rank]                                    */
    struct v4_compressor main;  /* CSA and HCA                                                 */
    struct v4_compressor index; /* CSA: its entries are the indexer's keys                     */
    struct tensor index_q_b;    /* CSA: [index_n_heads * index_head_dim, q_rank]               */
    struct tensor index_w;      /* CSA: [index_n_heads, dim]                                   */
};

struct v4_layer {
    struct hyper_weights attn_hyper, ffn_hyper;
    struct tensor attn_norm, ffn_norm; /* [dim] */
    struct v4_attention attn;
    struct tensor gate;  /* [n_experts, dim]                                         */
    struct tensor bias;  /* [n_experts]; data NULL in hash layers                    */
    struct tensor table; /* tid2eid [vocab_size, top_k] i64; data NULL in the others */
    struct moe_weights moe;
};

struct v4 {
    struct v4_config cfg;
    struct tensor embed; /* [vocab_size, dim] */
    struct v4_layer layers[MAX_LAYERS];
    struct hyper_weights head_hyper;
    struct tensor norm, head;    /* [dim], [vocab_size, dim]                                        */
    float *frequencies[2];       /* [rope_dim / 2], owned: of window layers, of those that compress */
    float *ones;                 /* [head_dim], owned: the weight of the norm that has none         */
    struct mlp_weights *experts; /* owned; those of all layers                                      */
};

/* Binds to the published names. Matrices in f32, f16, bf16, or FP8 and FP4 with scales. m can be released also when this fails. */
enum fathom_status v4_bind(struct v4 *m, const struct v4_config *cfg, const struct weights *w, struct fathom_err *err);

/* One layer's attention alone, and the tables it needs. */
enum fathom_status v4_bind_attention(struct v4 *m, const struct v4_config *cfg, size_t layer, const struct weights *w,
                                     struct fathom_err *err);

void v4_release(struct v4 *m); /* a zeroed one is fine */

/* Residual streams x [n, n_streams * dim] of n tokens: their embedding in every stream. */
void v4_embed(struct run *run, const struct v4 *m, struct tensor *x, const int32_t *ids);

/* Runs x through all layers, in place, at positions s->n_tok .. + n - 1, and moves the state on. n > 1 is a prefill or a
 * chunk of one, n = 1 a step; any chunking gives the same bits. ids: the tokens, which the hash layers want to know. After
 * an error in the run the state is of no use until it is reset or restored. */
void v4_forward(struct run *run, const struct v4 *m, struct v4_state *s, struct tensor *x, const int32_t *ids);

/* logits [n, vocab_size] of streams x after the last layer. */
void v4_logits(struct run *run, const struct v4 *m, struct tensor *logits, const struct tensor *x);

/* The attention sublayer of one layer: u [n, dim] of normed inputs a [n, dim] at positions pos .. pos + n - 1. */
void v4_attend(struct run *run, const struct v4 *m, size_t layer, struct v4_state *s, struct tensor *u,
               const struct tensor *a, size_t pos);

#endif
