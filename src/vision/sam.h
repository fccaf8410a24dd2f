/* The SAM ViT-B tower of DeepEncoder (arXiv:2510.18234 §3.2; spec deepseek-ocr §3.1): a picture to a map of vision
 * tokens, 16 times fewer than its patches. */
#ifndef FATHOM_VISION_SAM_H
#define FATHOM_VISION_SAM_H

#include "kernel/kernel.h"
#include "weights/config.h"

struct sam_block {
    struct tensor norm1_w, norm1_b; /* [dim]                                               */
    struct tensor qkv_w, qkv_b;     /* [3 dim, dim], [3 dim]: all q, all k, all v          */
    struct tensor rel_h, rel_w;     /* [2 window - 1, head_dim], global: [2 pos_side - 1, head_dim] */
    struct tensor proj_w, proj_b;   /* [dim, dim], [dim]                                   */
    struct tensor norm2_w, norm2_b; /* [dim]                                               */
    struct tensor lin1_w, lin1_b;   /* [mlp_dim, dim], [mlp_dim]                           */
    struct tensor lin2_w, lin2_b;   /* [dim, mlp_dim], [dim]                               */
};

struct sam {
    struct sam_config cfg;
    struct tensor patch_w, patch_b; /* [dim, 3, 16, 16], [dim]                   */
    struct tensor pos_embed;        /* [1, pos_side, pos_side, dim]              */
    struct sam_block blocks[MAX_LAYERS];
    struct tensor neck_conv1, neck_conv2;     /* [neck, dim, 1, 1], [neck, neck, 3, 3]     */
    struct tensor neck_norm1_w, neck_norm1_b; /* [neck]                                    */
    struct tensor neck_norm2_w, neck_norm2_b; /* [neck]                                    */
    struct tensor net_2, net_3;               /* [mid, neck, 3, 3], [out, mid, 3, 3]       */
};

enum fathom_status sam_bind(struct sam *s, const struct sam_config *cfg, const struct weights *w,
                            struct fathom_err *err);

/* Side of the token map of a view of side x side pixels, and tokens: 1024 -> 16, 768 -> 12, 640 -> 10. */
size_t sam_map_side(const struct sam_config *cfg, size_t side);

/* pixels [n_views, 3, side, side], normalised. Returns tokens [n_views * m * m, out_dim] from the arena, view by view,
 * row-major over the map; what the tower needed besides is given back. */
struct tensor sam_forward(struct run *run, const struct sam *s, const float *pixels, size_t side, size_t n_views);

#endif
