/* The language model of DeepSeek-OCR and DeepSeek-OCR-2: DeepSeek-3B-MoE (spec deepseek-ocr §4). */
#ifndef FATHOM_MODELS_DEEPSEEK_DECODER_H
#define FATHOM_MODELS_DEEPSEEK_DECODER_H

#include "kernel/kernel.h"
#include "nn/kv_cache.h"
#include "weights/config.h"

struct decoder_layer {
    struct tensor attn_norm;          /* [dim]                                     */
    struct tensor q_w, k_w, v_w, o_w; /* [n_heads * head_dim, dim], o the other way */
    struct tensor ffn_norm;           /* [dim]                                     */
    struct mlp_weights mlp;           /* the first n_dense_layers layers           */
    struct moe_weights moe;           /* the others                                */
};

struct decoder {
    struct decoder_config cfg;
    struct tensor embed_tokens; /* [vocab_size, dim] */
    struct decoder_layer layers[MAX_LAYERS];
    struct tensor norm;          /* [dim]             */
    struct tensor lm_head;       /* [vocab_size, dim] */
    struct mlp_weights *experts; /* owned; those of all layers, which the layers' moe point into */
};

enum fathom_status decoder_bind(struct decoder *d, const struct decoder_config *cfg, const struct weights *w,
                                struct fathom_err *err);
void decoder_release(struct decoder *d);

/* Runs x [n, dim] (embeddings; overwritten by the hidden states after the last layer, before the norm) through all
 * layers at positions kv->n_tok .. + n - 1 and appends them to kv. n > 1 is a prefill or a chunk of one, n = 1 a step;
 * any chunking gives the same bits. */
void decoder_forward(struct run *run, const struct decoder *d, struct kv_cache *kv, struct tensor *x);

/* logits [n, vocab_size] of hidden states x [n, dim]: lm_head(norm(x)). */
void decoder_logits(struct run *run, const struct decoder *d, struct tensor *logits, const struct tensor *x);

#endif
