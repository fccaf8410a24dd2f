/* CLIP-L/14 over SAM tokens (spec deepseek-ocr §3.2):
 *
 *   x = norm([class, token_0, ..., token_n-1] + positions)
 *   24 layers:  x += out(attention(norm(x))), everything sees everything;  x += fc2(quick_gelu(fc1(norm(x))))
 *   out = x without the class token
 */
#include "vision/clip.h"

#include "vision/pos_table.h"
#include "weights/bind.h"

enum fathom_status clip_bind(struct clip *c, const struct clip_config *cfg, const struct weights *w,
                             struct fathom_err *err)
{
    struct binder b = binder_init(w, err);
    struct tensor pos;
    size_t dim = cfg->dim, side = cfg->pos_side;

    c->cfg = *cfg;
    bind_prefix(&b, "model.vision_model.");
    bind_vector(&b, &c->class_embedding, "embeddings.class_embedding", dim);
    bind_matrix(&b, &pos, "embeddings.position_embedding.weight", 1 + side * side, dim);
    bind_vector(&b, &c->pre_norm_w, "pre_layrnorm.weight", dim); /* published with this spelling */
    bind_vector(&b, &c->pre_norm_b, "pre_layrnorm.bias", dim);
    for (size_t l = 0; l < cfg->n_layers; l++) {
        struct clip_layer *k = &c->layers[l];
        bind_prefix(&b, "model.vision_model.transformer.layers.%zu.", l);
        bind_vector(&b, &k->norm1_w, "layer_norm1.weight", dim);
        bind_vector(&b, &k->norm1_b, "layer_norm1.bias", dim);
        bind_matrix(&b, &k->qkv_w, "self_attn.qkv_proj.weight", 3 * dim, dim);
        bind_vector(&b, &k->qkv_b, "self_attn.qkv_proj.bias", 3 * dim);
        bind_matrix(&b, &k->out_w, "self_attn.out_proj.weight", dim, dim);
        bind_vector(&b, &k->out_b, "self_attn.out_proj.bias", dim);
        bind_vector(&b, &k->norm2_w, "layer_norm2.weight", dim);
        bind_vector(&b, &k->norm2_b, "layer_norm2.bias", dim);
        bind_matrix(&b, &k->fc1_w, "mlp.fc1.weight", cfg->mlp_dim, dim);
        bind_vector(&b, &k->fc1_b, "mlp.fc1.bias", cfg->mlp_dim);
        bind_matrix(&b, &k->fc2_w, "mlp.fc2.weight", dim, cfg->mlp_dim);
        bind_vector(&b, &k->fc2_b, "mlp.fc2.bias", dim);
    }
    if (b.status)
        return b.status;
    if (pos.dtype != DTYPE_F32 && pos.dtype != DTYPE_BF16)
        return fail(err, FATHOM_EUNSUPPORTED, "the position table of CLIP is %s, expected f32 or bf16",
                    dtype_name(pos.dtype));
    c->pos_class = tensor_rows(&pos, 0, 1);
    struct tensor grid = tensor_rows(&pos, 1, side * side);
    c->pos_grid = tensor_4d(grid.dtype, grid.data, 1, side, side, dim);
    return FATHOM_OK;
}

/* [class, sam] + positions of each view, before the norm: [n_views * (1 + n), dim]. */
static struct tensor join_class(struct run *run, const struct clip *c, const struct tensor *sam, size_t n_views)
{
    size_t n = sam->shape[0] / n_views, m = 0, dim = c->cfg.dim;
    struct tensor x = run_alloc(run, n_views * (1 + n), dim);
    struct arena_mark mark = arena_save(run->arena);
    struct tensor class_row = tensor_2d(c->class_embedding.dtype, c->class_embedding.data, 1, dim);
    struct tensor pos = run_alloc(run, 1, dim);

    while (m * m < n)
        m++;
    copy(run, &pos, &c->pos_class);
    struct tensor grid = pos_table_2d(run, &c->pos_grid, c->cfg.pos_side, m);
    for (size_t v = 0; v < n_views; v++) {
        struct tensor first = tensor_rows(&x, v * (1 + n), 1), rest = tensor_rows(&x, v * (1 + n) + 1, n);
        struct tensor from = tensor_rows(sam, v * n, n);
        copy(run, &first, &class_row);
        add(run, &first, &pos);
        copy(run, &rest, &from);
        add(run, &rest, &grid);
    }
    arena_restore(run->arena, mark);
    return x;
}

struct tensor clip_forward(struct run *run, const struct clip *c, const struct tensor *sam, size_t n_views)
{
    size_t n = sam->shape[0] / n_views, rows = n_views * (1 + n), dim = c->cfg.dim;
    float eps = c->cfg.norm_eps;
    struct tensor out = run_alloc(run, n_views * n, dim);
    struct arena_mark mark = arena_save(run->arena);
    struct tensor x = join_class(run, c, sam, n_views), h = run_alloc(run, rows, dim), y = run_alloc(run, rows, dim);
    struct tensor qkv = run_alloc(run, rows, 3 * dim), hidden = run_alloc(run, rows, c->cfg.mlp_dim);
    struct tensor q = tensor_cols(&qkv, 0, dim), k = tensor_cols(&qkv, dim, dim), v = tensor_cols(&qkv, 2 * dim, dim);

    layernorm(run, &x, &x, &c->pre_norm_w, &c->pre_norm_b, eps);
    for (size_t l = 0; l < c->cfg.n_layers; l++) {
        const struct clip_layer *w = &c->layers[l];
        layernorm(run, &h, &x, &w->norm1_w, &w->norm1_b, eps);
        linear(run, &qkv, &h, &w->qkv_w, &w->qkv_b);
        attention_prefix(run, &h, &q, &k, &v, c->cfg.n_heads, c->cfg.n_heads, n_views, 1 + n);
        linear(run, &y, &h, &w->out_w, &w->out_b);
        add(run, &x, &y);
        layernorm(run, &h, &x, &w->norm2_w, &w->norm2_b, eps);
        linear_quick_gelu(run, &hidden, &h, &w->fc1_w, &w->fc1_b);
        linear(run, &y, &hidden, &w->fc2_w, &w->fc2_b);
        add(run, &x, &y);
    }
    for (size_t i = 0; i < n_views; i++) {
        struct tensor image = tensor_rows(&x, i * (1 + n) + 1, n), to = tensor_rows(&out, i * n, n);
        copy(run, &to, &image);
    }
    arena_restore(run->arena, mark);
    return out;
}
