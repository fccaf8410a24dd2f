/* What the shapes of the tensors say about the sizes, and where they contradict the config. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "weights/config_parts.h"

/* Looks into the weights; the first missing or strange tensor is recorded. */
struct prober {
    const struct weights *w;
    struct fathom_err *err;
    enum fathom_status status;
};

static bool vfind(const struct prober *p, const struct weight **weight, char name[160], const char *format,
                  va_list args)
{
    vsnprintf(name, 160, format, args);
    *weight = weights_find(p->w, name);
    return *weight != NULL;
}

__attribute__((format(printf, 2, 3))) static bool has(const struct prober *p, const char *format, ...)
{
    char name[160];
    const struct weight *weight;
    va_list args;
    va_start(args, format);
    bool found = vfind(p, &weight, name, format, args);
    va_end(args);
    return found;
}

/* Extent `axis` of a tensor that must be there and have n_dims dimensions, or be a flattened convolution. */
__attribute__((format(printf, 4, 5))) static size_t extent(struct prober *p, int n_dims, int axis, const char *format,
                                                           ...)
{
    char name[160], shape[96];
    const struct weight *weight;
    va_list args;
    va_start(args, format);
    bool found = vfind(p, &weight, name, format, args);
    va_end(args);
    if (p->status)
        return 1;
    if (!found) {
        p->status = fail(p->err, FATHOM_EFORMAT, "tensor '%s' is missing", name);
        return 1;
    }
    const struct tensor *t = &weight->tensor;
    if (t->n_dims == 0)
        p->status = fail(p->err, FATHOM_EUNSUPPORTED, "tensor '%s' has dtype %s, which is of no use here",
                         weight->file_name, weight->file_dtype);
    else if (t->n_dims != n_dims && !(n_dims == 4 && t->n_dims == 2))
        p->status = fail(p->err, FATHOM_EFORMAT, "tensor '%s' has shape %s, expected %d dimensions", weight->file_name,
                         tensor_shape_text(t, shape), n_dims);
    else if (t->shape[axis] == 0 || t->shape[axis] > MAX_VOCAB)
        p->status = fail(p->err, FATHOM_EFORMAT, "tensor '%s' has shape %s, expected extents from 1 to %zu",
                         weight->file_name, tensor_shape_text(t, shape), MAX_VOCAB);
    return p->status ? 1 : t->shape[axis];
}

/* Layers are counted by a vector that each of them has; format holds one %zu. */
static size_t count_layers(struct prober *p, const char *prefix, const char *leaf)
{
    size_t n = 0;
    while (n <= MAX_LAYERS && has(p, "%s%zu.%s", prefix, n, leaf))
        n++;
    if (n == 0)
        extent(p, 1, 0, "%s0.%s", prefix, leaf); /* says that it is missing */
    else if (n > MAX_LAYERS && !p->status)
        p->status = fail(p->err, FATHOM_ELIMIT, "more than %d layers '%s'", MAX_LAYERS, prefix);
    return n;
}

static size_t square_root(size_t n)
{
    size_t root = 0;
    while ((root + 1) * (root + 1) <= n)
        root++;
    return root;
}

/* Relative position tables have 2n - 1 rows for windows of side n and for the whole grid; only the grid's is as long as
 * the position table is wide. */
static void probe_windows(struct prober *p, struct sam_config *c)
{
    size_t window = 0;
    memset(c->is_global, 0, sizeof c->is_global);
    for (size_t l = 0; !p->status && l < c->n_layers; l++) {
        size_t rows = extent(p, 2, 0, "model.sam_model.blocks.%zu.attn.rel_pos_h", l);
        c->is_global[l] = rows == 2 * c->pos_side - 1;
        if (c->is_global[l] || p->status)
            continue;
        if (rows % 2 == 0 || (window && rows != 2 * window - 1))
            p->status = fail(p->err, FATHOM_EFORMAT,
                             "tensor 'model.sam_model.blocks.%zu.attn.rel_pos_h' has %zu rows, expected %zu as its "
                             "neighbours or %zu for the whole grid",
                             l, rows, window ? 2 * window - 1 : 2 * c->window - 1, 2 * c->pos_side - 1);
        window = (rows + 1) / 2;
    }
    if (window)
        c->window = window;
}

static void probe_sam(struct prober *p, struct sam_config *c)
{
    const char *first = "model.sam_model.blocks.0.";
    c->dim = extent(p, 4, 0, "model.sam_model.patch_embed.proj.weight");
    const struct weight *patch = weights_find(p->w, "model.sam_model.patch_embed.proj.weight");
    if (!p->status)
        c->patch = patch->tensor.n_dims == 4 ? patch->tensor.shape[3] : square_root(patch->tensor.shape[1] / 3);
    const struct weight *pos = weights_find(p->w, "model.sam_model.pos_embed");
    c->pos_side = extent(p, 4, 1, "model.sam_model.pos_embed");
    if (!p->status && pos->tensor.n_dims != 4)
        p->status = fail(p->err, FATHOM_EFORMAT, "tensor '%s' has %d dimensions, expected 4", pos->file_name,
                         pos->tensor.n_dims);
    c->n_layers = count_layers(p, "model.sam_model.blocks.", "norm1.weight");
    probe_windows(p, c);
    size_t head_dim = extent(p, 2, 1, "%sattn.rel_pos_h", first);
    if (!p->status && c->dim % head_dim)
        p->status = fail(p->err, FATHOM_EFORMAT, "the vision tower is %zu wide, which is no multiple of its heads' %zu",
                         c->dim, head_dim);
    c->n_heads = c->dim / head_dim;
    c->mlp_dim = extent(p, 2, 0, "%smlp.lin1.weight", first);
    c->neck_dim = extent(p, 4, 0, "model.sam_model.neck.0.weight");
    c->mid_dim = extent(p, 4, 0, "model.sam_model.net_2.weight");
    c->out_dim = extent(p, 4, 0, "model.sam_model.net_3.weight");
}

/* Rows of the q and k projections against the config's numbers of heads. A head_dim of 0 was not said. */
static void probe_heads(struct prober *p, const char *attention, size_t n_heads, size_t *n_kv_heads, size_t *head_dim)
{
    size_t q = extent(p, 2, 0, "%sq_proj.weight", attention), k = extent(p, 2, 0, "%sk_proj.weight", attention);
    if (p->status)
        return;
    size_t d = q / n_heads;
    if (q % n_heads || (*head_dim && *head_dim != d)) {
        p->status =
            *head_dim ? fail(p->err, FATHOM_EFORMAT, "tensor '%sq_proj.weight' has %zu rows, expected %zu heads of %zu",
                             attention, q, n_heads, *head_dim)
                      : fail(p->err, FATHOM_EFORMAT,
                             "tensor '%sq_proj.weight' has %zu rows, expected a multiple of %zu heads", attention, q,
                             n_heads);
        return;
    }
    if (k != *n_kv_heads * d)
        p->status = fail(p->err, FATHOM_EFORMAT, "tensor '%sk_proj.weight' has %zu rows, expected %zu heads of %zu",
                         attention, k, *n_kv_heads, d);
    *head_dim = d;
}

static void probe_encoder(struct prober *p, struct encoder_config *c)
{
    const char *first = "model.qwen2_model.model.model.layers.0.";
    c->n_layers = count_layers(p, "model.qwen2_model.model.model.layers.", "input_layernorm.weight");
    c->dim = extent(p, 1, 0, "%sinput_layernorm.weight", first);
    c->mlp_dim = extent(p, 2, 0, "%smlp.gate_proj.weight", first);
    if (c->n_heads == 0) { /* the published config names no heads */
        size_t q = extent(p, 2, 0, "%sself_attn.q_proj.weight", first);
        size_t k = extent(p, 2, 0, "%sself_attn.k_proj.weight", first);
        c->head_dim = ENCODER_HEAD_DIM;
        c->n_heads = q < c->head_dim ? 1 : q / c->head_dim;
        c->n_kv_heads = k < c->head_dim ? 1 : k / c->head_dim;
    }
    probe_heads(p, "model.qwen2_model.model.model.layers.0.self_attn.", c->n_heads, &c->n_kv_heads, &c->head_dim);
}

static void probe_clip(struct prober *p, struct clip_config *c)
{
    const char *first = "model.vision_model.transformer.layers.0.";
    c->n_layers = count_layers(p, "model.vision_model.transformer.layers.", "layer_norm1.weight");
    c->dim = extent(p, 1, 0, "%slayer_norm1.weight", first);
    c->mlp_dim = extent(p, 2, 0, "%smlp.fc1.weight", first);
    c->pos_side = square_root(extent(p, 2, 0, "model.vision_model.embeddings.position_embedding.weight") - 1);
}

static void probe_decoder(struct prober *p, struct decoder_config *c)
{
    c->vocab_size = extent(p, 2, 0, "model.embed_tokens.weight");
    c->dim = extent(p, 2, 1, "model.embed_tokens.weight");
    c->n_layers = count_layers(p, "model.layers.", "input_layernorm.weight");
    for (c->n_dense_layers = 0; c->n_dense_layers < c->n_layers; c->n_dense_layers++)
        if (!has(p, "model.layers.%zu.mlp.gate_proj.weight", c->n_dense_layers))
            break;
    if (c->n_dense_layers > 0)
        c->mlp_dim = extent(p, 2, 0, "model.layers.0.mlp.gate_proj.weight");
    size_t sparse = c->n_dense_layers; /* the first layer with experts */
    if (sparse < c->n_layers) {
        c->n_experts = extent(p, 2, 0, "model.layers.%zu.mlp.gate.weight", sparse);
        c->expert_dim = extent(p, 2, 0, "model.layers.%zu.mlp.experts.0.gate_proj.weight", sparse);
        c->shared_dim = has(p, "model.layers.%zu.mlp.shared_experts.gate_proj.weight", sparse)
                            ? extent(p, 2, 0, "model.layers.%zu.mlp.shared_experts.gate_proj.weight", sparse)
                            : 0;
    }
    probe_heads(p, "model.layers.0.self_attn.", c->n_heads, &c->n_kv_heads, &c->head_dim);
}

enum fathom_status config_from_tensors(struct model_config *c, const struct weights *w, struct fathom_err *err)
{
    struct prober p = {w, err, FATHOM_OK};
    probe_decoder(&p, &c->decoder);
    probe_sam(&p, &c->sam);
    if (c->kind == MODEL_OCR1)
        probe_clip(&p, &c->clip);
    else
        probe_encoder(&p, &c->encoder);
    return p.status;
}
