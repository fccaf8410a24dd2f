/* The sizes of a DeepSeek-V4 model (spec deepseek-v4 §1.1), from its config.json. */
#ifndef FATHOM_WEIGHTS_CONFIG_V4_H
#define FATHOM_WEIGHTS_CONFIG_V4_H

#include "weights/config.h"

#define V4_CSA_RATIO 4 /* the compression ratio that means an indexer and overlapping windows */

struct v4_config {                                                    /* as published for Flash        */
    size_t vocab_size, dim, n_layers, n_ctx;                          /* 129280, 4096, 43, 1048576     */
    size_t n_heads, head_dim, rope_dim, q_rank;                       /* 64, 512, 64, 1024             */
    size_t o_groups, o_rank, window;                                  /* 8, 1024, 128                  */
    size_t n_experts, top_k, expert_dim, n_shared, n_hash_layers;     /* 256, 6, 2048, 1, 3            */
    size_t index_n_heads, index_head_dim, index_top_k;                /* 64, 128, 512                  */
    size_t n_streams, sinkhorn_iters;                                 /* 4, 20                         */
    size_t ratio[MAX_LAYERS];                                         /* 0, 0, 4, 128, 4, 128, ...     */
    float norm_eps, hyper_eps, routed_scale, swiglu_limit;            /* 1e-6, 1e-6, 1.5, 10           */
    double rope_theta, compress_rope_theta;                           /* 1e4, 1.6e5                    */
    double yarn_factor, yarn_context, yarn_beta_fast, yarn_beta_slow; /* 16, 65536, 32, 1; off: 1      */
    int32_t bos_id, eos_id;                                           /* 0, 1                          */
    bool is_quantised;                                                /* has a quantization_config     */
    bool has_fp8_experts;                                             /* expert_dtype is fp8, not fp4  */
};

/* Reads a config.json. What it does not say is as published for Flash, except that compress_ratios must be there for other
 * numbers of layers. Values that no number may have, options that the model does not know and contradictions are errors
 * that name the field. */
enum fathom_status v4_config_read(struct v4_config *c, const char *path, struct fathom_err *err);

/* Whether path is the config.json of such a model, however wrong its fields. */
bool v4_config_is(const char *path);

/* The same as v4_config_read from the file's text. */
enum fathom_status v4_config_parse(struct v4_config *c, const char *text, size_t n, struct fathom_err *err);

#endif
