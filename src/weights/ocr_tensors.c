#include "weights/ocr_tensors.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* A list that grows; after a failed allocation it takes nothing more. */
struct list {
    struct tensor_spec *specs;
    size_t n, capacity;
    bool failed;
    char prefix[64]; /* in front of the names that follow */
};

__attribute__((format(printf, 2, 3))) static void set_prefix(struct list *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(l->prefix, sizeof l->prefix, format, args);
    va_end(args);
}

static void add(struct list *l, const char *name, int n_dims, const size_t *shape)
{
    if (l->n == l->capacity && !l->failed) {
        size_t capacity = l->capacity ? 2 * l->capacity : 256;
        struct tensor_spec *specs = reallocarray(l->specs, capacity, sizeof *specs);
        l->failed = !specs;
        if (specs) {
            l->specs = specs;
            l->capacity = capacity;
        }
    }
    if (l->failed)
        return;
    struct tensor_spec *spec = &l->specs[l->n++];
    *spec = (struct tensor_spec){.n_dims = n_dims};
    snprintf(spec->name, sizeof spec->name, "%s%s", l->prefix, name);
    for (int d = 0; d < n_dims; d++)
        spec->shape[d] = shape[d];
}

static void vector(struct list *l, const char *name, size_t n) { add(l, name, 1, (size_t[]){n}); }

static void matrix(struct list *l, const char *name, size_t rows, size_t cols)
{
    add(l, name, 2, (size_t[]){rows, cols});
}

static void conv(struct list *l, const char *name, size_t out, size_t in, size_t side)
{
    add(l, name, 4, (size_t[]){out, in, side, side});
}

static void norm(struct list *l, const char *weight, const char *bias, size_t dim)
{
    vector(l, weight, dim);
    vector(l, bias, dim);
}

static void list_sam(struct list *l, const struct sam_config *c)
{
    size_t dim = c->dim, head_dim = dim / c->n_heads;
    set_prefix(l, "model.sam_model.");
    add(l, "pos_embed", 4, (size_t[]){1, c->pos_side, c->pos_side, dim});
    conv(l, "patch_embed.proj.weight", dim, 3, c->patch);
    vector(l, "patch_embed.proj.bias", dim);
    for (size_t i = 0; i < c->n_layers; i++) {
        size_t n_rel = 2 * (c->is_global[i] ? c->pos_side : c->window) - 1;
        set_prefix(l, "model.sam_model.blocks.%zu.", i);
        norm(l, "norm1.weight", "norm1.bias", dim);
        norm(l, "norm2.weight", "norm2.bias", dim);
        matrix(l, "attn.qkv.weight", 3 * dim, dim);
        vector(l, "attn.qkv.bias", 3 * dim);
        matrix(l, "attn.proj.weight", dim, dim);
        vector(l, "attn.proj.bias", dim);
        matrix(l, "attn.rel_pos_h", n_rel, head_dim);
        matrix(l, "attn.rel_pos_w", n_rel, head_dim);
        matrix(l, "mlp.lin1.weight", c->mlp_dim, dim);
        vector(l, "mlp.lin1.bias", c->mlp_dim);
        matrix(l, "mlp.lin2.weight", dim, c->mlp_dim);
        vector(l, "mlp.lin2.bias", dim);
    }
    set_prefix(l, "model.sam_model.");
    conv(l, "neck.0.weight", c->neck_dim, dim, 1);
    norm(l, "neck.1.weight", "neck.1.bias", c->neck_dim);
    conv(l, "neck.2.weight", c->neck_dim, c->neck_dim, 3);
    norm(l, "neck.3.weight", "neck.3.bias", c->neck_dim);
    conv(l, "net_2.weight", c->mid_dim, c->neck_dim, 3);
    conv(l, "net_3.weight", c->out_dim, c->mid_dim, 3);
}

static void list_encoder(struct list *l, const struct encoder_config *c)
{
    size_t dim = c->dim, q = c->n_heads * c->head_dim, kv = c->n_kv_heads * c->head_dim;
    set_prefix(l, "model.qwen2_model.");
    matrix(l, "query_768.weight", 144, dim);
    matrix(l, "query_1024.weight", 256, dim);
    for (size_t i = 0; i < c->n_layers; i++) {
        set_prefix(l, "model.qwen2_model.model.model.layers.%zu.", i);
        vector(l, "input_layernorm.weight", dim);
        vector(l, "post_attention_layernorm.weight", dim);
        matrix(l, "self_attn.q_proj.weight", q, dim);
        vector(l, "self_attn.q_proj.bias", q);
        matrix(l, "self_attn.k_proj.weight", kv, dim);
        vector(l, "self_attn.k_proj.bias", kv);
        matrix(l, "self_attn.v_proj.weight", kv, dim);
        vector(l, "self_attn.v_proj.bias", kv);
        matrix(l, "self_attn.o_proj.weight", dim, q);
        matrix(l, "mlp.gate_proj.weight", c->mlp_dim, dim);
        matrix(l, "mlp.up_proj.weight", c->mlp_dim, dim);
        matrix(l, "mlp.down_proj.weight", dim, c->mlp_dim);
    }
    set_prefix(l, "model.qwen2_model.model.model.");
    vector(l, "norm.weight", dim);
}

static void list_clip(struct list *l, const struct clip_config *c)
{
    size_t dim = c->dim;
    set_prefix(l, "model.vision_model.");
    vector(l, "embeddings.class_embedding", dim);
    conv(l, "embeddings.patch_embedding.weight", dim, 3, 14); /* in the published files, though nothing uses it */
    matrix(l, "embeddings.position_embedding.weight", 1 + c->pos_side * c->pos_side, dim);
    norm(l, "pre_layrnorm.weight", "pre_layrnorm.bias", dim);
    for (size_t i = 0; i < c->n_layers; i++) {
        set_prefix(l, "model.vision_model.transformer.layers.%zu.", i);
        norm(l, "layer_norm1.weight", "layer_norm1.bias", dim);
        norm(l, "layer_norm2.weight", "layer_norm2.bias", dim);
        matrix(l, "self_attn.qkv_proj.weight", 3 * dim, dim);
        vector(l, "self_attn.qkv_proj.bias", 3 * dim);
        matrix(l, "self_attn.out_proj.weight", dim, dim);
        vector(l, "self_attn.out_proj.bias", dim);
        matrix(l, "mlp.fc1.weight", c->mlp_dim, dim);
        vector(l, "mlp.fc1.bias", c->mlp_dim);
        matrix(l, "mlp.fc2.weight", dim, c->mlp_dim);
        vector(l, "mlp.fc2.bias", dim);
    }
}

static void list_mlp(struct list *l, size_t hidden, size_t dim)
{
    matrix(l, "gate_proj.weight", hidden, dim);
    matrix(l, "up_proj.weight", hidden, dim);
    matrix(l, "down_proj.weight", dim, hidden);
}

static void list_decoder(struct list *l, const struct decoder_config *c)
{
    size_t dim = c->dim, q = c->n_heads * c->head_dim, kv = c->n_kv_heads * c->head_dim;
    set_prefix(l, "%s", "");
    matrix(l, "model.embed_tokens.weight", c->vocab_size, dim);
    for (size_t i = 0; i < c->n_layers; i++) {
        set_prefix(l, "model.layers.%zu.", i);
        vector(l, "input_layernorm.weight", dim);
        vector(l, "post_attention_layernorm.weight", dim);
        matrix(l, "self_attn.q_proj.weight", q, dim);
        matrix(l, "self_attn.k_proj.weight", kv, dim);
        matrix(l, "self_attn.v_proj.weight", kv, dim);
        matrix(l, "self_attn.o_proj.weight", dim, q);
        set_prefix(l, "model.layers.%zu.mlp.", i);
        if (i < c->n_dense_layers) {
            list_mlp(l, c->mlp_dim, dim);
            continue;
        }
        matrix(l, "gate.weight", c->n_experts, dim);
        for (size_t e = 0; e < c->n_experts; e++) {
            set_prefix(l, "model.layers.%zu.mlp.experts.%zu.", i, e);
            list_mlp(l, c->expert_dim, dim);
        }
        set_prefix(l, "model.layers.%zu.mlp.shared_experts.", i);
        if (c->shared_dim)
            list_mlp(l, c->shared_dim, dim);
    }
    set_prefix(l, "%s", "");
    vector(l, "model.norm.weight", dim);
    matrix(l, "lm_head.weight", c->vocab_size, dim);
}

enum fathom_status ocr_tensors(struct tensor_spec **out, size_t *n, const struct model_config *c,
                               struct fathom_err *err)
{
    struct list l = {0};
    list_sam(&l, &c->sam);
    if (c->kind == MODEL_OCR1)
        list_clip(&l, &c->clip);
    else
        list_encoder(&l, &c->encoder);
    set_prefix(&l, "model.");
    if (c->kind == MODEL_OCR1)
        vector(&l, "image_newline", c->decoder.dim);
    matrix(&l, "projector.layers.weight", c->decoder.dim,
           c->kind == MODEL_OCR1 ? c->clip.dim + c->sam.out_dim : c->encoder.dim);
    vector(&l, "projector.layers.bias", c->decoder.dim);
    vector(&l, "view_seperator", c->decoder.dim);
    list_decoder(&l, &c->decoder);
    if (l.failed) {
        free(l.specs);
        *out = NULL;
        *n = 0;
        return fail_nomem(err, 2 * l.capacity * sizeof *l.specs, "the tensor table");
    }
    *out = l.specs;
    *n = l.n;
    return FATHOM_OK;
}

size_t tensor_spec_elements(const struct tensor_spec *spec)
{
    size_t n = 1;
    for (int d = 0; d < spec->n_dims; d++)
        n *= spec->shape[d];
    return n;
}
