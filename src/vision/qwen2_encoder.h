/* The encoder of DeepSeek-OCR-2 (arXiv DeepSeek-OCR-2 §3; spec deepseek-ocr §3.3): a Qwen2-shaped transformer in which
 * image tokens see each other and learned queries read them in causal order. */
#ifndef FATHOM_VISION_QWEN2_ENCODER_H
#define FATHOM_VISION_QWEN2_ENCODER_H

#include "kernel/kernel.h"
#include "weights/config.h"

struct encoder_layer {
    struct tensor attn_norm; /* [dim]                                     */
    struct tensor q_w, q_b;  /* [n_heads * head_dim, dim], [..]           */
    struct tensor k_w, k_b;  /* [n_kv_heads * head_dim, dim], [..]        */
    struct tensor v_w, v_b;  /* the same                                  */
    struct tensor o_w;       /* [dim, n_heads * head_dim]                 */
    struct tensor ffn_norm;  /* [dim]                                     */
    struct mlp_weights mlp;  /* SwiGLU, mlp_dim wide                      */
};

#define ENCODER_MAX_QUERIES 2

struct encoder {
    struct encoder_config cfg;
    struct tensor queries[ENCODER_MAX_QUERIES]; /* [144, dim] for 768 px, [256, dim] for 1024 px */
    struct encoder_layer layers[MAX_LAYERS];
    struct tensor norm; /* [dim] */
};

enum fathom_status encoder_bind(struct encoder *e, const struct encoder_config *cfg, const struct weights *w,
                                struct fathom_err *err);

/* image [n_views * n, dim], n the length of one of the query tables. Returns [n_views * n, dim] from the arena: the outputs
 * of the queries after the final norm, view by view. */
struct tensor encoder_forward(struct run *run, const struct encoder *e, const struct tensor *image, size_t n_views);

#endif
