#include "weights/config_v4.h"

#include <stdlib.h>

#include "base/mapfile.h"
#include "weights/config_json.h"
#include "weights/config_parts.h"

#define MAX_CONFIG_BYTES ((size_t)4 << 20)
#define MAX_HYPER_STREAMS 8
#define MAX_RATIO 4096
#define MAX_WINDOW 65536

static void flash(struct v4_config *c)
{
    *c = (struct v4_config){.vocab_size = 129280,
                            .dim = 4096,
                            .n_layers = 43,
                            .n_ctx = 1048576,
                            .n_heads = 64,
                            .head_dim = 512,
                            .rope_dim = 64,
                            .q_rank = 1024,
                            .o_groups = 8,
                            .o_rank = 1024,
                            .window = 128,
                            .n_experts = 256,
                            .top_k = 6,
                            .expert_dim = 2048,
                            .n_shared = 1,
                            .n_hash_layers = 3,
                            .index_n_heads = 64,
                            .index_head_dim = 128,
                            .index_top_k = 512,
                            .n_streams = 4,
                            .sinkhorn_iters = 20,
                            .norm_eps = 1e-6f,
                            .hyper_eps = 1e-6f,
                            .routed_scale = 1.5f,
                            .swiglu_limit = 10.0f,
                            .rope_theta = 1e4,
                            .compress_rope_theta = 1.6e5,
                            .yarn_factor = 16,
                            .yarn_context = 65536,
                            .yarn_beta_fast = 32,
                            .yarn_beta_slow = 1,
                            .bos_id = 0,
                            .eos_id = 1};
    for (size_t l = 2; l < c->n_layers; l++)
        c->ratio[l] = l % 2 ? 128 : V4_CSA_RATIO;
}

static void read_double(struct config_reader *r, const struct config_section *s, const char *key, double min,
                        double max, double *out)
{
    float value;
    if (config_float(r, s, key, min, max, &value))
        *out = (double)value;
}

/* One number for each layer; the published lists have one more, for the draft layer behind the last. */
static void read_ratios(struct config_reader *r, const struct config_section *s, struct v4_config *c)
{
    const struct json_node *list = config_field(r, s, "compress_ratios");
    if (!list && c->n_layers == 43)
        return;
    if (!list || list->type != JSON_ARRAY || list->n < c->n_layers || list->n > MAX_LAYERS + 1) {
        if (!r->status)
            r->status = fail(r->err, FATHOM_EFORMAT, "compress_ratios is no list of %zu numbers, one for each layer",
                             c->n_layers);
        return;
    }
    const struct json_node *e = json_first(r->json, list);
    for (size_t l = 0; l < c->n_layers; l++, e = json_next(r->json, list, e)) {
        int64_t ratio;
        if (json_i64(e, &ratio) && (ratio == 0 || (ratio >= 2 && ratio <= MAX_RATIO)))
            c->ratio[l] = (size_t)ratio;
        else
            config_bad(r, s, "compress_ratios", e, FATHOM_EFORMAT, "0 or a number of tokens from 2 to 4096");
    }
}

static void read_yarn(struct config_reader *r, const struct json_node *root, struct v4_config *c)
{
    struct config_section s = config_section(r, root, "rope_scaling", "rope_scaling.");
    if (!s.object)
        s = config_section(r, root, "rope_parameters", "rope_parameters.");
    config_only_string(r, &s, "type", "yarn");
    config_only_string(r, &s, "rope_type", "yarn");
    read_double(r, &s, "factor", 1, 1e6, &c->yarn_factor);
    read_double(r, &s, "original_max_position_embeddings", 1, 1e9, &c->yarn_context);
    read_double(r, &s, "beta_fast", 1e-3, 1e6, &c->yarn_beta_fast);
    read_double(r, &s, "beta_slow", 1e-3, 1e6, &c->yarn_beta_slow);
}

static void read_fields(struct config_reader *r, const struct json_node *root, struct v4_config *c)
{
    struct config_section s = {root, NULL, ""};
    size_t n_kv_heads = 1;
    config_size(r, &s, "vocab_size", 1, MAX_VOCAB, &c->vocab_size);
    config_size(r, &s, "hidden_size", 1, MAX_DIM, &c->dim);
    config_size(r, &s, "num_hidden_layers", 1, MAX_LAYERS, &c->n_layers);
    config_size(r, &s, "max_position_embeddings", 1, MAX_CTX, &c->n_ctx);
    config_size(r, &s, "num_attention_heads", 1, MAX_HEADS, &c->n_heads);
    config_size(r, &s, "num_key_value_heads", 1, 1, &n_kv_heads);
    config_size(r, &s, "head_dim", 2, MAX_DIM, &c->head_dim);
    config_size(r, &s, "qk_rope_head_dim", 2, MAX_DIM, &c->rope_dim);
    config_size(r, &s, "q_lora_rank", 1, MAX_DIM, &c->q_rank);
    config_size(r, &s, "o_groups", 1, MAX_HEADS, &c->o_groups);
    config_size(r, &s, "o_lora_rank", 1, MAX_DIM, &c->o_rank);
    config_size(r, &s, "sliding_window", 1, MAX_WINDOW, &c->window);
    config_size(r, &s, "n_routed_experts", 1, MAX_EXPERTS, &c->n_experts);
    config_size(r, &s, "num_experts_per_tok", 1, MAX_EXPERTS, &c->top_k);
    config_size(r, &s, "moe_intermediate_size", 1, MAX_DIM, &c->expert_dim);
    config_size(r, &s, "n_shared_experts", 1, 64, &c->n_shared);
    config_size(r, &s, "num_hash_layers", 0, MAX_LAYERS, &c->n_hash_layers);
    config_size(r, &s, "index_n_heads", 1, MAX_HEADS, &c->index_n_heads);
    config_size(r, &s, "index_head_dim", 2, MAX_DIM, &c->index_head_dim);
    config_size(r, &s, "index_topk", 1, MAX_CTX, &c->index_top_k);
    config_size(r, &s, "hc_mult", 1, MAX_HYPER_STREAMS, &c->n_streams);
    config_size(r, &s, "hc_sinkhorn_iters", 1, 1000, &c->sinkhorn_iters);
    config_float(r, &s, "rms_norm_eps", 1e-12, 0.1, &c->norm_eps);
    config_float(r, &s, "hc_eps", 1e-12, 0.1, &c->hyper_eps);
    config_float(r, &s, "routed_scaling_factor", 1e-6, 1e6, &c->routed_scale);
    config_float(r, &s, "swiglu_limit", 1e-6, 1e6, &c->swiglu_limit);
    read_double(r, &s, "rope_theta", 2, 1e12, &c->rope_theta);
    read_double(r, &s, "compress_rope_theta", 2, 1e12, &c->compress_rope_theta);
    read_yarn(r, root, c);
    config_id(r, &s, "bos_token_id", &c->bos_id);
    config_id(r, &s, "eos_token_id", &c->eos_id);
    config_only_string(r, &s, "hidden_act", "silu");
    config_only_string(r, &s, "scoring_func", "sqrtsoftplus");
    config_only_string(r, &s, "topk_method", "noaux_tc");
    config_only_bool(r, &s, "norm_topk_prob", true);
    config_only_bool(r, &s, "attention_bias", false);
    config_only_bool(r, &s, "tie_word_embeddings", false);
    read_ratios(r, &s, c);
    c->is_quantised = config_field(r, &s, "quantization_config") != NULL;
    c->has_fp8_experts = json_is_string(config_field(r, &s, "expert_dtype"), "fp8");
}

static enum fathom_status check(const struct v4_config *c, struct fathom_err *err)
{
    if (c->rope_dim % 2 || c->rope_dim > c->head_dim || c->rope_dim > c->index_head_dim)
        return fail(err, FATHOM_EFORMAT,
                    "qk_rope_head_dim is %zu, expected an even part of head_dim %zu and of "
                    "index_head_dim %zu",
                    c->rope_dim, c->head_dim, c->index_head_dim);
    if (c->n_heads % c->o_groups)
        return fail(err, FATHOM_EFORMAT, "%zu heads cannot be divided into o_groups of %zu", c->n_heads, c->o_groups);
    if (c->top_k > c->n_experts)
        return fail(err, FATHOM_EFORMAT, "num_experts_per_tok is %zu, but there are %zu experts", c->top_k,
                    c->n_experts);
    if (c->n_hash_layers > c->n_layers)
        return fail(err, FATHOM_EFORMAT, "num_hash_layers is %zu, but there are %zu layers", c->n_hash_layers,
                    c->n_layers);
    if (c->is_quantised && !c->has_fp8_experts && (c->dim % F4_BLOCK || c->expert_dim % F4_BLOCK))
        return fail(err, FATHOM_EFORMAT, "experts of %zu x %zu weights cannot be cut into FP4 blocks of %d",
                    c->expert_dim, c->dim, F4_BLOCK);
    if ((size_t)c->bos_id >= c->vocab_size || (size_t)c->eos_id >= c->vocab_size)
        return fail(err, FATHOM_EFORMAT, "bos_token_id %d or eos_token_id %d is outside the vocabulary of %zu",
                    (int)c->bos_id, (int)c->eos_id, c->vocab_size);
    return FATHOM_OK;
}

static bool is_v4(const struct json *j, const struct json_node *root)
{
    const struct json_node *list = json_get(j, root, "architectures");
    return json_is_string(json_get(j, root, "model_type"), "deepseek_v4") ||
           (list && list->type == JSON_ARRAY && json_is_string(json_first(j, list), "DeepseekV4ForCausalLM"));
}

bool v4_config_is(const char *path)
{
    char *text;
    size_t n;
    struct json j;
    if (file_read(path, MAX_CONFIG_BYTES, &text, &n, NULL))
        return false;
    bool is = !json_parse(&j, text, n, NULL) && is_v4(&j, json_root(&j));
    json_free(&j);
    free(text);
    return is;
}

enum fathom_status v4_config_parse(struct v4_config *c, const char *text, size_t n, struct fathom_err *err)
{
    struct json j;
    enum fathom_status status = json_parse(&j, text, n, err);
    flash(c);
    if (status)
        return status;
    struct config_reader r = {&j, err, FATHOM_OK};
    if (json_root(&j)->type != JSON_OBJECT)
        r.status = fail(err, FATHOM_EFORMAT, "not a JSON object");
    else if (!is_v4(&j, json_root(&j)))
        r.status = fail(err, FATHOM_EUNSUPPORTED, "neither architectures nor model_type is DeepSeek-V4's");
    else
        read_fields(&r, json_root(&j), c);
    json_free(&j);
    return r.status ? r.status : check(c, err);
}

enum fathom_status v4_config_read(struct v4_config *c, const char *path, struct fathom_err *err)
{
    char *text;
    size_t n;
    enum fathom_status status = file_read(path, MAX_CONFIG_BYTES, &text, &n, err);
    if (status)
        return status;
    status = v4_config_parse(c, text, n, err);
    free(text);
    if (status)
        fail_at(err, "'%s': ", path);
    return status;
}
