/* config.json in its two dialects: the one published with the weights (model_type deepseek_vl_v2, spec deepseek-ocr
 * §1.2) and transformers' own (deepseek_ocr2, §1.4). */
#include <string.h>

#include "weights/config_parts.h"

static const struct architecture {
    const char *name;
    enum model_kind kind;
} architectures[] = {
    {"DeepseekOCR2ForCausalLM", MODEL_OCR2}, {"DeepseekOcr2ForConditionalGeneration", MODEL_OCR2},
    {"deepseek_ocr2", MODEL_OCR2},           {"DeepseekOCRForCausalLM", MODEL_OCR1},
    {"DeepseekV4ForCausalLM", MODEL_V4},     {"deepseek_v4", MODEL_V4},
};

static bool find_kind(const struct json_node *name, enum model_kind *kind)
{
    for (size_t i = 0; name && i < sizeof architectures / sizeof *architectures; i++)
        if (json_is_string(name, architectures[i].name)) {
            *kind = architectures[i].kind;
            return true;
        }
    return false;
}

/* The architecture tells the models apart; OCR-1 and OCR-2 were published with the same model_type. */
static bool read_kind(const struct config_reader *r, const struct json_node *root, enum model_kind *kind)
{
    const struct json_node *list = json_get(r->json, root, "architectures");
    if (list && list->type == JSON_ARRAY && find_kind(json_first(r->json, list), kind))
        return true;
    return find_kind(json_get(r->json, root, "model_type"), kind);
}

/* rope_theta stands in the section, or in its rope_parameters in newer files. Only unscaled RoPE is known. */
static void read_rope(struct config_reader *r, const struct config_section *s, float *theta)
{
    static const double min = 1, max = 1e12;
    config_float(r, s, "rope_theta", min, max, theta);
    const struct json_node *scaling = config_field(r, s, "rope_scaling");
    if (scaling)
        config_bad(r, s, "rope_scaling", scaling, FATHOM_EUNSUPPORTED, "null");
    struct config_section rope = config_section(r, s->object, "rope_parameters", "rope_parameters.");
    config_float(r, &rope, "rope_theta", min, max, theta);
    config_only_string(r, &rope, "rope_type", "default");
}

static void read_eps(struct config_reader *r, const struct config_section *s, const char *key, float *eps)
{
    config_float(r, s, key, 1e-12, 0.1, eps);
}

/* Newer files list the kind of every layer, older ones count the dense ones in front. */
static void read_dense_layers(struct config_reader *r, const struct config_section *s, struct decoder_config *c)
{
    config_size(r, s, "first_k_dense_replace", 0, MAX_LAYERS, &c->n_dense_layers);
    const struct json_node *list = config_field(r, s, "mlp_layer_types");
    if (!list)
        return;
    if (list->type != JSON_ARRAY) {
        config_bad(r, s, "mlp_layer_types", list, FATHOM_EFORMAT, "a list");
        return;
    }
    bool dense_done = false;
    c->n_dense_layers = 0;
    for (const struct json_node *e = json_first(r->json, list); e; e = json_next(r->json, list, e)) {
        bool is_dense = json_is_string(e, "dense");
        if ((!is_dense && !json_is_string(e, "sparse")) || (is_dense && dense_done))
            config_bad(r, s, "mlp_layer_types", e, FATHOM_EUNSUPPORTED, "'dense' layers and then 'sparse' ones");
        dense_done |= !is_dense;
        c->n_dense_layers += is_dense;
    }
}

static void read_decoder(struct config_reader *r, const struct config_section *s, struct decoder_config *c)
{
    size_t n_shared = 2;
    config_size(r, s, "hidden_size", 1, MAX_DIM, &c->dim);
    config_size(r, s, "num_hidden_layers", 1, MAX_LAYERS, &c->n_layers);
    config_size(r, s, "num_attention_heads", 1, MAX_HEADS, &c->n_heads);
    c->n_kv_heads = c->n_heads;
    config_size(r, s, "num_key_value_heads", 1, MAX_HEADS, &c->n_kv_heads);
    c->head_dim = 0;
    config_size(r, s, "head_dim", 1, MAX_DIM, &c->head_dim);
    config_size(r, s, "intermediate_size", 1, MAX_DIM, &c->mlp_dim);
    config_size(r, s, "moe_intermediate_size", 1, MAX_DIM, &c->expert_dim);
    config_size(r, s, "n_routed_experts", 1, MAX_EXPERTS, &c->n_experts);
    config_size(r, s, "num_experts_per_tok", 1, MAX_EXPERTS, &c->top_k);
    config_size(r, s, "n_shared_experts", 0, 64, &n_shared);
    c->shared_dim = n_shared * c->expert_dim;
    read_dense_layers(r, s, c);
    config_size(r, s, "vocab_size", 1, MAX_VOCAB, &c->vocab_size);
    config_size(r, s, "max_position_embeddings", 1, MAX_CTX, &c->n_ctx);
    read_eps(r, s, "rms_norm_eps", &c->norm_eps);
    read_rope(r, s, &c->rope_theta);
    config_float(r, s, "routed_scaling_factor", 1e-6, 1e6, &c->routed_scale);
    config_bool(r, s, "norm_topk_prob", &c->norm_topk);
    config_id(r, s, "bos_token_id", &c->bos_id);
    config_id(r, s, "eos_token_id", &c->eos_id);
    config_only_string(r, s, "hidden_act", "silu");
    config_only_string(r, s, "scoring_func", "softmax");
    config_only_string(r, s, "topk_method", "greedy");
    config_only_bool(r, s, "use_mla", false);
    config_only_bool(r, s, "attention_bias", false);
    config_only_bool(r, s, "mlp_bias", false);
    config_only_bool(r, s, "tie_word_embeddings", false);
}

static void read_global_layers(struct config_reader *r, const struct config_section *s, const char *key,
                               struct sam_config *c)
{
    size_t layer;
    if (!config_field(r, s, key))
        return;
    memset(c->is_global, 0, sizeof c->is_global);
    for (size_t i = 0; i < MAX_LAYERS && config_list_size(r, s, key, i, 0, MAX_LAYERS - 1, &layer); i++)
        c->is_global[layer] = true;
}

static void read_clip(struct config_reader *r, const struct config_section *s, struct clip_config *c)
{
    size_t side = 0, patch = 14;
    config_size(r, s, "width", 1, MAX_DIM, &c->dim);
    config_size(r, s, "layers", 1, MAX_LAYERS, &c->n_layers);
    config_size(r, s, "heads", 1, MAX_HEADS, &c->n_heads);
    config_size(r, s, "patch_size", 1, 256, &patch);
    if (config_size(r, s, "image_size", patch, MAX_SIDE, &side))
        c->pos_side = side / patch;
    c->mlp_dim = 4 * c->dim;
}

/* The published form gives the widths only: mlp_ratio and the last of downsample_channels are wrong in it, and the
 * encoder's other sizes are in no file. */
static void read_vision_published(struct config_reader *r, const struct json_node *root, struct model_config *c)
{
    struct config_section vision = config_section(r, root, "vision_config", "vision_config.");
    struct config_section width = config_section(r, vision.object, "width", "vision_config.width.");
    struct config_section sam = config_section(r, width.object, "sam_vit_b", "vision_config.width.sam_vit_b.");
    struct config_section encoder = config_section(r, width.object, "qwen2-0-5b", "vision_config.width.qwen2-0-5b.");
    struct config_section clip = config_section(r, width.object, "clip-l-14-224", "vision_config.width.clip-l-14-224.");
    size_t side = 0;
    config_size(r, &sam, "width", 1, MAX_DIM, &c->sam.dim);
    config_size(r, &sam, "layers", 1, MAX_LAYERS, &c->sam.n_layers);
    config_size(r, &sam, "heads", 1, MAX_HEADS, &c->sam.n_heads);
    config_list_size(r, &sam, "downsample_channels", 0, 1, MAX_DIM, &c->sam.mid_dim);
    read_global_layers(r, &sam, "global_attn_indexes", &c->sam);
    c->sam.mlp_dim = 4 * c->sam.dim;
    if (config_size(r, &vision, "image_size", c->sam.patch, MAX_SIDE, &side))
        c->sam.pos_side = side / c->sam.patch;
    if (c->kind == MODEL_OCR1) {
        read_clip(r, &clip, &c->clip);
        c->sam.out_dim = c->clip.dim;
        return;
    }
    config_size(r, &encoder, "dim", 1, MAX_DIM, &c->encoder.dim);
    c->sam.out_dim = c->encoder.dim;
    c->encoder.n_heads = c->encoder.head_dim = 0;
}

static void read_sam(struct config_reader *r, const struct config_section *s, struct sam_config *c)
{
    size_t side = 0;
    float ratio = 4;
    config_size(r, s, "hidden_size", 1, MAX_DIM, &c->dim);
    config_size(r, s, "num_hidden_layers", 1, MAX_LAYERS, &c->n_layers);
    config_size(r, s, "num_attention_heads", 1, MAX_HEADS, &c->n_heads);
    config_float(r, s, "mlp_ratio", 1.0 / 64, 64, &ratio);
    c->mlp_dim = (size_t)((double)c->dim * ratio);
    config_size(r, s, "mlp_dim", 1, MAX_DIM, &c->mlp_dim);
    config_size(r, s, "output_channels", 1, MAX_DIM, &c->neck_dim);
    config_list_size(r, s, "downsample_channels", 0, 1, MAX_DIM, &c->mid_dim);
    config_list_size(r, s, "downsample_channels", 1, 1, MAX_DIM, &c->out_dim);
    config_size(r, s, "patch_size", 1, 256, &c->patch);
    config_size(r, s, "window_size", 1, 256, &c->window);
    if (config_size(r, s, "image_size", c->patch, MAX_SIDE, &side))
        c->pos_side = side / c->patch;
    read_global_layers(r, s, "global_attn_indexes", c);
    read_eps(r, s, "layer_norm_eps", &c->norm_eps);
    config_only_string(r, s, "hidden_act", "gelu");
    config_only_bool(r, s, "qkv_bias", true);
    config_only_bool(r, s, "use_abs_pos", true);
    config_only_bool(r, s, "use_rel_pos", true);
}

static void read_encoder(struct config_reader *r, const struct config_section *s, struct encoder_config *c)
{
    config_size(r, s, "hidden_size", 1, MAX_DIM, &c->dim);
    config_size(r, s, "num_hidden_layers", 1, MAX_LAYERS, &c->n_layers);
    config_size(r, s, "num_attention_heads", 1, MAX_HEADS, &c->n_heads);
    config_size(r, s, "num_key_value_heads", 1, MAX_HEADS, &c->n_kv_heads);
    c->head_dim = 0;
    config_size(r, s, "head_dim", 1, MAX_DIM, &c->head_dim);
    config_size(r, s, "intermediate_size", 1, MAX_DIM, &c->mlp_dim);
    read_eps(r, s, "rms_norm_eps", &c->norm_eps);
    read_rope(r, s, &c->rope_theta);
    config_only_string(r, s, "hidden_act", "silu");
    config_only_bool(r, s, "use_sliding_window", false);
}

void config_from_json(struct model_config *c, bool *kind_known, struct config_reader *r, const struct json_node *root)
{
    enum model_kind kind = c->kind;
    *kind_known = read_kind(r, root, &kind);
    *c = kind == MODEL_OCR1 ? config_ocr1_published() : config_ocr2_published();
    c->kind = kind;
    if (kind == MODEL_V4) /* another family's file means other things by the same words */
        return;
    struct config_section top = {root, NULL, ""};
    config_id(r, &top, "image_token_id", &c->image_id);
    struct config_section text = config_section(r, root, "text_config", "text_config.");
    if (text.object) {
        struct config_section vision = config_section(r, root, "vision_config", "vision_config.");
        struct config_section sam = config_section(r, vision.object, "sam_config", "sam_config.");
        struct config_section encoder = config_section(r, vision.object, "encoder_config", "encoder_config.");
        read_decoder(r, &text, &c->decoder);
        read_sam(r, &sam, &c->sam);
        read_encoder(r, &encoder, &c->encoder);
    } else {
        struct config_section language = config_section(r, root, "language_config", "language_config.");
        language.fallback = root; /* the published files say everything twice */
        read_decoder(r, &language, &c->decoder);
        read_vision_published(r, root, c);
    }
}

static void require(struct config_reader *r, const struct config_section *s, const char *key)
{
    if (!r->status && !config_field(r, s, key))
        r->status = fail(r->err, FATHOM_EFORMAT, "%s%s is missing, and no tensor shows it", s->name, key);
}

void config_require(enum model_kind kind, struct config_reader *r, const struct json_node *root)
{
    struct config_section text = config_section(r, root, "text_config", "text_config.");
    bool published = !text.object;
    if (published) {
        text = config_section(r, root, "language_config", "language_config.");
        text.fallback = root;
    }
    require(r, &text, "num_attention_heads");
    require(r, &text, "num_experts_per_tok");
    if (published || kind != MODEL_OCR2) /* the published files say nothing of the encoder's heads */
        return;
    struct config_section vision = config_section(r, root, "vision_config", "vision_config.");
    struct config_section encoder = config_section(r, vision.object, "encoder_config", "vision_config.encoder_config.");
    require(r, &encoder, "num_attention_heads");
}
