/* SAM ViT-B, the first half of DeepEncoder (arXiv:2510.18234 §3.2, spec deepseek-ocr §3.1):
 *
 *   picture [3, S, S] -> 16 x 16 patches, plus position table -> map [g, g, dim], g = S / 16
 *   12 blocks:  x += attention(norm(x));  x += lin2(gelu(lin1(norm(x))))
 *     attention has decomposed relative positions; 4 blocks are global, the others look at windows of 14 x 14
 *   neck:       conv 1x1, norm, conv 3x3, norm
 *   compressor: two 3x3 convolutions of stride 2, nothing between -> [g / 4, g / 4, out_dim]
 */
#include "vision/sam.h"

#include "vision/pos_table.h"
#include "weights/bind.h"

enum fathom_status sam_bind(struct sam *s, const struct sam_config *cfg, const struct weights *w,
                            struct fathom_err *err)
{
    struct binder b = binder_init(w, err);
    size_t dim = cfg->dim, head_dim = dim / cfg->n_heads;

    s->cfg = *cfg;
    bind_prefix(&b, "model.sam_model.");
    bind_conv(&b, &s->patch_w, "patch_embed.proj.weight", dim, 3, cfg->patch);
    bind_vector(&b, &s->patch_b, "patch_embed.proj.bias", dim);
    if (!b.status)
        b.status = weights_get(w, &s->pos_embed, 4, (size_t[]){1, cfg->pos_side, cfg->pos_side, dim}, err,
                               "%spos_embed", b.prefix);
    for (size_t l = 0; l < cfg->n_layers; l++) {
        struct sam_block *k = &s->blocks[l];
        size_t n_rel = 2 * (cfg->is_global[l] ? cfg->pos_side : cfg->window) - 1;
        bind_prefix(&b, "model.sam_model.blocks.%zu.", l);
        bind_vector(&b, &k->norm1_w, "norm1.weight", dim);
        bind_vector(&b, &k->norm1_b, "norm1.bias", dim);
        bind_matrix(&b, &k->qkv_w, "attn.qkv.weight", 3 * dim, dim);
        bind_vector(&b, &k->qkv_b, "attn.qkv.bias", 3 * dim);
        bind_matrix(&b, &k->rel_h, "attn.rel_pos_h", n_rel, head_dim);
        bind_matrix(&b, &k->rel_w, "attn.rel_pos_w", n_rel, head_dim);
        bind_matrix(&b, &k->proj_w, "attn.proj.weight", dim, dim);
        bind_vector(&b, &k->proj_b, "attn.proj.bias", dim);
        bind_vector(&b, &k->norm2_w, "norm2.weight", dim);
        bind_vector(&b, &k->norm2_b, "norm2.bias", dim);
        bind_matrix(&b, &k->lin1_w, "mlp.lin1.weight", cfg->mlp_dim, dim);
        bind_vector(&b, &k->lin1_b, "mlp.lin1.bias", cfg->mlp_dim);
        bind_matrix(&b, &k->lin2_w, "mlp.lin2.weight", dim, cfg->mlp_dim);
        bind_vector(&b, &k->lin2_b, "mlp.lin2.bias", dim);
    }
    bind_prefix(&b, "model.sam_model.");
    bind_conv(&b, &s->neck_conv1, "neck.0.weight", cfg->neck_dim, dim, 1);
    bind_vector(&b, &s->neck_norm1_w, "neck.1.weight", cfg->neck_dim);
    bind_vector(&b, &s->neck_norm1_b, "neck.1.bias", cfg->neck_dim);
    bind_conv(&b, &s->neck_conv2, "neck.2.weight", cfg->neck_dim, cfg->neck_dim, 3);
    bind_vector(&b, &s->neck_norm2_w, "neck.3.weight", cfg->neck_dim);
    bind_vector(&b, &s->neck_norm2_b, "neck.3.bias", cfg->neck_dim);
    bind_conv(&b, &s->net_2, "net_2.weight", cfg->mid_dim, cfg->neck_dim, 3);
    bind_conv(&b, &s->net_3, "net_3.weight", cfg->out_dim, cfg->mid_dim, 3);
    return b.status;
}

static size_t halved(size_t side) { return (side + 1) / 2; } /* 3x3, stride 2, pad 1 */

size_t sam_map_side(const struct sam_config *cfg, size_t side) { return halved(halved(side / cfg->patch)); }

/* x += attention(norm(x)), over the whole g x g map or over its windows. The padding of windows comes after the norm
 * and is zero there, so padded positions have the qkv bias for q, k and v. */
static void attention(struct run *run, const struct sam *s, size_t l, struct tensor *x, size_t g, size_t n_views)
{
    const struct sam_block *b = &s->blocks[l];
    size_t n = x->shape[0], dim = s->cfg.dim;
    struct relpos_shape shape = {.n_views = n_views, .gh = g, .gw = g, .n_heads = s->cfg.n_heads};
    struct arena_mark mark = arena_save(run->arena);
    struct tensor rel_h = b->rel_h, rel_w = b->rel_w;

    if (s->cfg.is_global[l]) {
        rel_h = pos_table_1d(run, &b->rel_h, 2 * g - 1);
        rel_w = pos_table_1d(run, &b->rel_w, 2 * g - 1);
    } else {
        shape.window = s->cfg.window;
    }
    struct tensor h = run_alloc(run, n, dim), qkv = run_alloc(run, n, 3 * dim);
    layernorm(run, &h, x, &b->norm1_w, &b->norm1_b, s->cfg.norm_eps);
    linear(run, &qkv, &h, &b->qkv_w, &b->qkv_b);
    attention_relpos(run, &h, &qkv, &b->qkv_b, &rel_h, &rel_w, shape);

    struct tensor y = tensor_2d(qkv.dtype, qkv.data, n, dim); /* qkv has been read */
    linear(run, &y, &h, &b->proj_w, &b->proj_b);
    add(run, x, &y);
    arena_restore(run->arena, mark);
}

/* x += lin2(gelu(lin1(norm(x)))), some rows at a time: the hidden rows of a whole 1024 px view would take 48 MiB, those
 * of 2048 rows (on the CPU) no more than the attention before. */
static void feed_forward(struct run *run, const struct sam *s, size_t l, struct tensor *x)
{
    const size_t max_rows = 2 * run->kernels->max_rows;
    const struct sam_block *b = &s->blocks[l];
    size_t n = x->shape[0], dim = s->cfg.dim, n_rows = n < max_rows ? n : max_rows;
    struct arena_mark mark = arena_save(run->arena);
    struct tensor h = run_alloc(run, n_rows, dim), hidden = run_alloc(run, n_rows, s->cfg.mlp_dim);

    for (size_t first = 0; first < n && run_ok(run); first += n_rows) {
        size_t m = n - first < n_rows ? n - first : n_rows;
        struct tensor part = tensor_rows(x, first, m), h_m = tensor_rows(&h, 0, m),
                      hidden_m = tensor_rows(&hidden, 0, m);
        layernorm(run, &h_m, &part, &b->norm2_w, &b->norm2_b, s->cfg.norm_eps);
        linear_gelu(run, &hidden_m, &h_m, &b->lin1_w, &b->lin1_b);
        linear(run, &h_m, &hidden_m, &b->lin2_w, &b->lin2_b);
        add(run, &part, &h_m);
    }
    arena_restore(run->arena, mark);
}

/* [views, g, g, dim] -> [views, g/4, g/4, out_dim] */
static void neck(struct run *run, const struct sam *s, struct tensor *out, const struct tensor *map)
{
    const struct conv2d_shape pointwise = {1, 1, 0}, same = {3, 1, 1}, half = {3, 2, 1};
    size_t views = map->shape[0], g = map->shape[1], n = views * g * g, c = s->cfg.neck_dim;
    struct tensor a = run_alloc_map(run, views, g, g, c), b = run_alloc_map(run, views, g, g, c);
    struct tensor a_rows = tensor_2d(a.dtype, a.data, n, c), b_rows = tensor_2d(b.dtype, b.data, n, c);

    conv2d(run, &a, map, &s->neck_conv1, NULL, pointwise);
    layernorm(run, &a_rows, &a_rows, &s->neck_norm1_w, &s->neck_norm1_b, s->cfg.norm_eps);
    conv2d(run, &b, &a, &s->neck_conv2, NULL, same);
    layernorm(run, &b_rows, &b_rows, &s->neck_norm2_w, &s->neck_norm2_b, s->cfg.norm_eps);

    struct tensor mid = run_alloc_map(run, views, halved(g), halved(g), s->cfg.mid_dim);
    conv2d(run, &mid, &b, &s->net_2, NULL, half);
    conv2d(run, out, &mid, &s->net_3, NULL, half);
}

struct tensor sam_forward(struct run *run, const struct sam *s, const float *pixels, size_t side, size_t n_views)
{
    size_t patch = s->cfg.patch, dim = s->cfg.dim, g = side / patch, m = sam_map_side(&s->cfg, side);
    struct tensor out = run_alloc_map(run, n_views, m, m, s->cfg.out_dim);
    struct arena_mark mark = arena_save(run->arena);
    struct tensor map = run_alloc_map(run, n_views, g, g, dim);
    struct tensor x = tensor_2d(map.dtype, map.data, n_views * g * g, dim);

    struct arena_mark inputs = arena_save(run->arena);
    struct tensor planes = run_alloc_map(run, n_views, 3, side, side); /* seen below as [n_views, S, S, 3] */
    upload(run, &planes, pixels);
    struct tensor picture = {.dtype = planes.dtype,
                             .n_dims = 4,
                             .shape = {n_views, side, side, 3},
                             .stride = {3 * side * side, side, 1, side * side},
                             .data = planes.data};
    conv2d(run, &map, &picture, &s->patch_w, &s->patch_b, (struct conv2d_shape){patch, patch, 0});
    struct tensor pos = pos_table_2d(run, &s->pos_embed, s->cfg.pos_side, g);
    for (size_t v = 0; v < n_views; v++) {
        struct tensor view = tensor_rows(&x, v * g * g, g * g);
        add(run, &view, &pos);
    }
    arena_restore(run->arena, inputs);

    for (size_t l = 0; l < s->cfg.n_layers; l++) {
        attention(run, s, l, &x, g, n_views);
        feed_forward(run, s, l, &x);
    }
    neck(run, s, &out, &map);
    arena_restore(run->arena, mark);
    return tensor_2d(out.dtype, out.data, n_views * m * m, s->cfg.out_dim);
}
