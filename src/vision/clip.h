/* The CLIP-L/14 body of DeepSeek-OCR (arXiv:2510.18234 §3.2; spec deepseek-ocr §3.2). It never sees pixels: the tokens
 * of the SAM tower take the place of its patch embeddings. */
#ifndef FATHOM_VISION_CLIP_H
#define FATHOM_VISION_CLIP_H

#include "kernel/kernel.h"
#include "weights/config.h"

struct clip_layer {
    struct tensor norm1_w, norm1_b; /* [dim]                                      */
    struct tensor qkv_w, qkv_b;     /* [3 dim, dim], [3 dim]: all q, all k, all v */
    struct tensor out_w, out_b;     /* [dim, dim], [dim]                          */
    struct tensor norm2_w, norm2_b; /* [dim]                                      */
    struct tensor fc1_w, fc1_b;     /* [mlp_dim, dim], [mlp_dim]                  */
    struct tensor fc2_w, fc2_b;     /* [dim, mlp_dim], [dim]                      */
};

struct clip {
    struct clip_config cfg;
    struct tensor class_embedding;        /* [dim]                                          */
    struct tensor pos_class;              /* [1, dim]: row 0 of the position table          */
    struct tensor pos_grid;               /* [pos_side, pos_side, dim]: its rows from 1 on  */
    struct tensor pre_norm_w, pre_norm_b; /* [dim]                                          */
    struct clip_layer layers[MAX_LAYERS];
};

enum fathom_status clip_bind(struct clip *c, const struct clip_config *cfg, const struct weights *w,
                             struct fathom_err *err);

/* sam [n_views * m * m, dim], view by view, row-major over the map. Returns as many rows from the arena: the last layer's
 * output without the class token and without a final norm. */
struct tensor clip_forward(struct run *run, const struct clip *c, const struct tensor *sam, size_t n_views);

#endif
