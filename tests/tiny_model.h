/* An OCR-2 network a thousandth of the published size, with synth-v1 weights made in memory, for tests of what does not
 * depend on the size. Views are 768 px tiles and a 1024 px page, as published. */
#ifndef FATHOM_TESTS_TINY_MODEL_H
#define FATHOM_TESTS_TINY_MODEL_H

#include "engine/model.h"
#include "weights/synth_weights.h"

static inline struct model_config tiny_config(void)
{
    struct model_config c = config_ocr2_published();
    c.sam = (struct sam_config){.dim = 32,
                                .n_layers = 2,
                                .n_heads = 2,
                                .mlp_dim = 48,
                                .neck_dim = 16,
                                .mid_dim = 24,
                                .out_dim = 32,
                                .patch = 16,
                                .window = 14,
                                .pos_side = 64,
                                .is_global = {false, true},
                                .norm_eps = 1e-6f};
    c.encoder = (struct encoder_config){.dim = 32,
                                        .n_layers = 2,
                                        .n_heads = 2,
                                        .n_kv_heads = 1,
                                        .head_dim = 16,
                                        .mlp_dim = 64,
                                        .rope_theta = 1e6f,
                                        .norm_eps = 1e-6f};
    c.decoder = (struct decoder_config){.dim = 64,
                                        .n_layers = 3,
                                        .n_dense_layers = 1,
                                        .n_heads = 4,
                                        .n_kv_heads = 4,
                                        .head_dim = 16,
                                        .mlp_dim = 96,
                                        .expert_dim = 32,
                                        .shared_dim = 64,
                                        .n_experts = 8,
                                        .top_k = 3,
                                        .vocab_size = 2048,
                                        .n_ctx = 2048,
                                        .rope_theta = 1e4f,
                                        .norm_eps = 1e-6f,
                                        .routed_scale = 1,
                                        .bos_id = 0,
                                        .eos_id = 1};
    c.image_id = 2042;
    return c;
}

/* The same as DeepSeek-OCR (1): views of 512 to 1280 px. */
static inline struct model_config tiny_ocr1_config(void)
{
    struct model_config tiny = tiny_config(), c = config_ocr1_published();
    c.sam = tiny.sam;
    c.decoder = tiny.decoder;
    c.image_id = tiny.image_id;
    c.clip =
        (struct clip_config){.dim = 32, .n_layers = 2, .n_heads = 2, .mlp_dim = 64, .pos_side = 16, .norm_eps = 1e-5f};
    return c;
}

/* NULL when it fails. */
static inline struct fathom_model *tiny_model_of(struct model_config c, struct fathom_err *err)
{
    struct weights *w = NULL;
    struct fathom_model *m = NULL;
    if (synth_ocr_weights(&w, &c, NULL, err) || model_from_weights(&m, w, &c, err))
        return NULL;
    return m;
}

static inline struct fathom_model *tiny_model(struct fathom_err *err) { return tiny_model_of(tiny_config(), err); }

#endif
