#include "weights/v4_tensors.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct list {
    struct v4_tensor *items;
    size_t n, capacity;
    bool failed;
};

/* cols 0: a vector. */
__attribute__((format(printf, 5, 6))) static void add(struct list *l, enum dtype dtype, size_t rows, size_t cols,
                                                      const char *format, ...)
{
    if (l->n == l->capacity) {
        size_t more = l->capacity ? 2 * l->capacity : 256;
        struct v4_tensor *grown = reallocarray(l->items, more, sizeof *grown);
        if (!grown) {
            l->failed = true;
            return;
        }
        l->items = grown;
        l->capacity = more;
    }
    struct v4_tensor *t = &l->items[l->n++];
    *t = (struct v4_tensor){.dtype = dtype, .n_dims = cols ? 2 : 1, .shape = {rows, cols}};
    va_list args;
    va_start(args, format);
    vsnprintf(t->name, sizeof t->name, format, args);
    va_end(args);
}

/* A matrix that is quantised when the config says so, with its scales: "<name>.weight" and "<name>.scale". */
static void add_matrix(struct list *l, const struct v4_config *c, enum dtype quantised, size_t rows, size_t cols,
                       const char *prefix, const char *name)
{
    enum dtype dtype = c->is_quantised ? quantised : DTYPE_BF16;
    add(l, dtype, rows, cols, "%s%s.weight", prefix, name);
    if (dtype == DTYPE_BF16)
        return;
    size_t shape[2];
    scale_shape(dtype, rows, cols, shape);
    add(l, DTYPE_F8_E8M0, shape[0], shape[1], "%s%s.scale", prefix, name);
    if (l->failed)
        return;
    l->items[l->n - 1].of = dtype;
    l->items[l->n - 1].of_shape[0] = rows;
    l->items[l->n - 1].of_shape[1] = cols;
}

static void add_compressor(struct list *l, const char *prefix, size_t ratio, size_t width, size_t dim)
{
    size_t rows = ratio == V4_CSA_RATIO ? 2 * width : width;
    add(l, DTYPE_F32, ratio, rows, "%sape", prefix);
    add(l, DTYPE_BF16, rows, dim, "%swkv.weight", prefix);
    add(l, DTYPE_BF16, rows, dim, "%swgate.weight", prefix);
    add(l, DTYPE_BF16, width, 0, "%snorm.weight", prefix);
}

static void add_attention(struct list *l, const struct v4_config *c, size_t layer)
{
    size_t q_dim = c->n_heads * c->head_dim, ratio = c->ratio[layer];
    char prefix[64], name[96];
    snprintf(prefix, sizeof prefix, "layers.%zu.attn.", layer);
    add(l, DTYPE_F32, c->n_heads, 0, "%sattn_sink", prefix);
    add_matrix(l, c, DTYPE_F8_E4M3, c->q_rank, c->dim, prefix, "wq_a");
    add(l, DTYPE_BF16, c->q_rank, 0, "%sq_norm.weight", prefix);
    add_matrix(l, c, DTYPE_F8_E4M3, q_dim, c->q_rank, prefix, "wq_b");
    add_matrix(l, c, DTYPE_F8_E4M3, c->head_dim, c->dim, prefix, "wkv");
    add(l, DTYPE_BF16, c->head_dim, 0, "%skv_norm.weight", prefix);
    add_matrix(l, c, DTYPE_F8_E4M3, c->o_groups * c->o_rank, q_dim / c->o_groups, prefix, "wo_a");
    add_matrix(l, c, DTYPE_F8_E4M3, c->dim, c->o_groups * c->o_rank, prefix, "wo_b");
    if (ratio == 0)
        return;
    snprintf(name, sizeof name, "%scompressor.", prefix);
    add_compressor(l, name, ratio, c->head_dim, c->dim);
    if (ratio != V4_CSA_RATIO)
        return;
    add_matrix(l, c, DTYPE_F8_E4M3, c->index_n_heads * c->index_head_dim, c->q_rank, prefix, "indexer.wq_b");
    add(l, DTYPE_BF16, c->index_n_heads, c->dim, "%sindexer.weights_proj.weight", prefix);
    snprintf(name, sizeof name, "%sindexer.compressor.", prefix);
    add_compressor(l, name, ratio, c->index_head_dim, c->dim);
}

static void add_hyper(struct list *l, size_t layer, const char *part, const struct v4_config *c)
{
    size_t s = c->n_streams;
    add(l, DTYPE_F32, s * (s + 2), s * c->dim, "layers.%zu.hc_%s_fn", layer, part);
    add(l, DTYPE_F32, s * (s + 2), 0, "layers.%zu.hc_%s_base", layer, part);
    add(l, DTYPE_F32, 3, 0, "layers.%zu.hc_%s_scale", layer, part);
}

static void add_expert(struct list *l, const struct v4_config *c, enum dtype quantised, const char *prefix,
                       size_t hidden, size_t dim)
{
    add_matrix(l, c, quantised, hidden, dim, prefix, "w1");
    add_matrix(l, c, quantised, hidden, dim, prefix, "w3");
    add_matrix(l, c, quantised, dim, hidden, prefix, "w2");
}

static void add_experts(struct list *l, const struct v4_config *c, size_t layer)
{
    char prefix[80];
    add(l, DTYPE_BF16, c->n_experts, c->dim, "layers.%zu.ffn.gate.weight", layer);
    if (layer < c->n_hash_layers)
        add(l, DTYPE_I64, c->vocab_size, c->top_k, "layers.%zu.ffn.gate.tid2eid", layer);
    else
        add(l, DTYPE_F32, c->n_experts, 0, "layers.%zu.ffn.gate.bias", layer);
    snprintf(prefix, sizeof prefix, "layers.%zu.ffn.shared_experts.", layer);
    add_expert(l, c, DTYPE_F8_E4M3, prefix, c->n_shared * c->expert_dim, c->dim);
    for (size_t e = 0; e < c->n_experts; e++) {
        snprintf(prefix, sizeof prefix, "layers.%zu.ffn.experts.%zu.", layer, e);
        add_expert(l, c, c->has_fp8_experts ? DTYPE_F8_E4M3 : DTYPE_F4_E2M1, prefix, c->expert_dim, c->dim);
    }
}

static enum fathom_status finish(struct list *l, struct v4_tensor **out, size_t *n, struct fathom_err *err)
{
    *out = NULL;
    if (l->failed) {
        free(l->items);
        return fail_nomem(err, 2 * l->capacity * sizeof *l->items, "the list of tensors");
    }
    *out = l->items;
    *n = l->n;
    return FATHOM_OK;
}

enum fathom_status v4_tensors(struct v4_tensor **out, size_t *n, const struct v4_config *c, struct fathom_err *err)
{
    struct list l = {0};
    add(&l, DTYPE_BF16, c->vocab_size, c->dim, "embed.weight");
    for (size_t layer = 0; layer < c->n_layers; layer++) {
        add_hyper(&l, layer, "attn", c);
        add_hyper(&l, layer, "ffn", c);
        add(&l, DTYPE_BF16, c->dim, 0, "layers.%zu.attn_norm.weight", layer);
        add(&l, DTYPE_BF16, c->dim, 0, "layers.%zu.ffn_norm.weight", layer);
        add_attention(&l, c, layer);
        add_experts(&l, c, layer);
    }
    add(&l, DTYPE_F32, c->n_streams, c->n_streams * c->dim, "hc_head_fn");
    add(&l, DTYPE_F32, c->n_streams, 0, "hc_head_base");
    add(&l, DTYPE_F32, 1, 0, "hc_head_scale");
    add(&l, DTYPE_BF16, c->dim, 0, "norm.weight");
    add(&l, DTYPE_BF16, c->vocab_size, c->dim, "head.weight");
    return finish(&l, out, n, err);
}

enum fathom_status v4_attention_tensors(struct v4_tensor **out, size_t *n, const struct v4_config *c, size_t layer,
                                        struct fathom_err *err)
{
    struct list l = {0};
    add_attention(&l, c, layer);
    return finish(&l, out, n, err);
}
