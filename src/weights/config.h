/* What a model folder says about its sizes, in one form for both config dialects. Sizes that tensors show (widths, layer
 * counts, expert counts, FFN widths, channels) are taken from the tensors; the config gives what no shape can. */
#ifndef FATHOM_WEIGHTS_CONFIG_H
#define FATHOM_WEIGHTS_CONFIG_H

#include "base/err.h"
#include "weights/weights.h"

enum model_kind { MODEL_OCR1, MODEL_OCR2, MODEL_V4 };

#define MAX_LAYERS 128

struct sam_config {
    size_t dim, n_layers, n_heads, mlp_dim, neck_dim, mid_dim, out_dim; /* 768, 12, 12, 3072, 256, 512, 896 */
    size_t patch, window, pos_side;                                     /* 16, 14, 64                       */
    bool is_global[MAX_LAYERS];                                         /* from the rel_pos tables' length  */
    float norm_eps;                                                     /* 1e-6                             */
};

struct encoder_config {                                           /* the OCR-2 encoder */
    size_t dim, n_layers, n_heads, n_kv_heads, head_dim, mlp_dim; /* 896, 24, 14, 2, 64, 4864 */
    float rope_theta, norm_eps;                                   /* 1e6, 1e-6                */
};

struct clip_config {                                  /* the CLIP-L/14 body of OCR-1 */
    size_t dim, n_layers, n_heads, mlp_dim, pos_side; /* 1024, 24, 16, 4096, 16 */
    float norm_eps;                                   /* 1e-5                   */
};

struct decoder_config {
    size_t dim, n_layers, n_dense_layers, n_heads, n_kv_heads, head_dim; /* 1280, 12, 1, 10, 10, 128 */
    size_t mlp_dim, expert_dim, shared_dim, n_experts, top_k;            /* 6848, 896, 1792, 64, 6   */
    size_t vocab_size, n_ctx;                                            /* 129280, 8192             */
    float rope_theta, norm_eps, routed_scale;                            /* 1e4, 1e-6, 1             */
    bool norm_topk;                                                      /* false                    */
    int32_t bos_id, eos_id;                                              /* 0, 1                     */
};

struct view_config {             /* preprocessor_config.json, or the published defaults */
    bool tiles;                  /* cut large pages into tiles beside the global view      */
    bool stretch;                /* the global view is stretched to its square, not padded */
    size_t base_side, tile_side; /* 1024, 768; without tiles the single view has base_side */
    size_t min_tiles, max_tiles; /* 2, 6                                                   */
    float mean[3], std[3];       /* 0.5 each                                               */
    uint8_t background[3];       /* 127 each                                               */
};

struct model_config {
    enum model_kind kind;
    struct sam_config sam;
    struct encoder_config encoder; /* OCR-2 */
    struct clip_config clip;       /* OCR-1 */
    struct decoder_config decoder;
    struct view_config view;
    int32_t image_id; /* image_token_id; 128815 when the config has none (a tokenizer's "<image>" comes first) */
};

/* Reads dir/config.json and, when they are there, the "image_processor" of dir/processor_config.json or else
 * dir/preprocessor_config.json, beside the opened weights. Values that no number may have (zero heads, a negative size, a
 * width of 10^12), options that the models do not know and contradictions are errors that name the field. */
enum fathom_status config_load(struct model_config *c, const char *dir, const struct weights *w,
                               struct fathom_err *err);

/* The same from a config.json alone, for weights that have yet to be made: all sizes are the config's, or follow from it;
 * what it does not say is as published. */
enum fathom_status config_read(struct model_config *c, const char *path, struct fathom_err *err);

/* The published sizes, for weights made in memory. */
struct model_config config_ocr1_published(void);
struct model_config config_ocr2_published(void);

/* Vision tokens of a view of side x side pixels: a map of ceil(ceil(side / patch / 2) / 2) squared. */
size_t config_view_tokens(const struct sam_config *sam, size_t side);

#endif
