/* The OCR-2 encoder (spec deepseek-ocr §3.3):
 *
 *   x = [image tokens V_0..V_n-1, queries Q_0..Q_n-1], positions 0..2n-1
 *   24 layers:  x += o(attention(rope(q), rope(k), v));  x += mlp(norm(x))
 *   image rows see the image, query i sees the image and the queries up to i: row r sees columns [0, max(n, r + 1)),
 *   two numbers instead of a mask
 *   out = norm(x[n..2n-1])
 */
#include "vision/qwen2_encoder.h"

#include "weights/bind.h"

enum fathom_status encoder_bind(struct encoder *e, const struct encoder_config *cfg, const struct weights *w,
                                struct fathom_err *err)
{
    struct binder b = binder_init(w, err);
    size_t dim = cfg->dim, q_dim = cfg->n_heads * cfg->head_dim, kv_dim = cfg->n_kv_heads * cfg->head_dim;

    e->cfg = *cfg;
    bind_prefix(&b, "model.qwen2_model.");
    bind_matrix(&b, &e->queries[0], "query_768.weight", 144, dim);
    bind_matrix(&b, &e->queries[1], "query_1024.weight", 256, dim);
    for (size_t l = 0; l < cfg->n_layers; l++) {
        struct encoder_layer *k = &e->layers[l];
        bind_prefix(&b, "model.qwen2_model.model.model.layers.%zu.", l);
        bind_vector(&b, &k->attn_norm, "input_layernorm.weight", dim);
        bind_matrix(&b, &k->q_w, "self_attn.q_proj.weight", q_dim, dim);
        bind_vector(&b, &k->q_b, "self_attn.q_proj.bias", q_dim);
        bind_matrix(&b, &k->k_w, "self_attn.k_proj.weight", kv_dim, dim);
        bind_vector(&b, &k->k_b, "self_attn.k_proj.bias", kv_dim);
        bind_matrix(&b, &k->v_w, "self_attn.v_proj.weight", kv_dim, dim);
        bind_vector(&b, &k->v_b, "self_attn.v_proj.bias", kv_dim);
        bind_matrix(&b, &k->o_w, "self_attn.o_proj.weight", dim, q_dim);
        bind_vector(&b, &k->ffn_norm, "post_attention_layernorm.weight", dim);
        bind_matrix(&b, &k->mlp.gate, "mlp.gate_proj.weight", cfg->mlp_dim, dim);
        bind_matrix(&b, &k->mlp.up, "mlp.up_proj.weight", cfg->mlp_dim, dim);
        bind_matrix(&b, &k->mlp.down, "mlp.down_proj.weight", dim, cfg->mlp_dim);
    }
    bind_prefix(&b, "model.qwen2_model.model.model.");
    bind_vector(&b, &e->norm, "norm.weight", dim);
    return b.status;
}

/* [image, queries] of each view -> [n_views * 2n, dim]; records an error when there is no query table of that length. */
static struct tensor join_queries(struct run *run, const struct encoder *e, const struct tensor *image, size_t n_views)
{
    size_t n = image->shape[0] / n_views, i = 0;
    struct tensor x = run_alloc(run, n_views * 2 * n, e->cfg.dim);

    while (i < ENCODER_MAX_QUERIES && e->queries[i].shape[0] != n)
        i++;
    if (i == ENCODER_MAX_QUERIES) {
        run_fail(run, FATHOM_EUNSUPPORTED, "the encoder has no queries for a view of %zu vision tokens", n);
        return x;
    }
    for (size_t v = 0; v < n_views; v++) {
        struct tensor first = tensor_rows(&x, v * 2 * n, n), second = tensor_rows(&x, v * 2 * n + n, n);
        struct tensor from = tensor_rows(image, v * n, n);
        copy(run, &first, &from);
        copy(run, &second, &e->queries[i]);
    }
    return x;
}

/* The query rows of each view of x [n_views * 2n, dim], gathered in rows 0 .. n_views * n - 1 of to. */
static void keep_queries(struct run *run, struct tensor *to, const struct tensor *x, size_t n, size_t n_views)
{
    for (size_t v = 0; v < n_views; v++) {
        struct tensor from = tensor_rows(x, v * 2 * n + n, n), rows = tensor_rows(to, v * n, n);
        copy(run, &rows, &from);
    }
    *to = tensor_rows(to, 0, n_views * n);
}

struct tensor encoder_forward(struct run *run, const struct encoder *e, const struct tensor *image, size_t n_views)
{
    const struct encoder_config *c = &e->cfg;
    size_t n = image->shape[0] / n_views, rows = n_views * 2 * n;
    size_t q_dim = c->n_heads * c->head_dim, kv_dim = c->n_kv_heads * c->head_dim;
    struct tensor out = run_alloc(run, n_views * n, c->dim);
    struct arena_mark mark = arena_save(run->arena);
    struct tensor x = join_queries(run, e, image, n_views);
    struct tensor h = run_alloc(run, rows, c->dim), y = run_alloc(run, rows, c->dim), a = run_alloc(run, rows, q_dim);
    struct tensor q = run_alloc(run, rows, q_dim), k = run_alloc(run, rows, kv_dim), v = run_alloc(run, rows, kv_dim);
    int32_t *pos = run_scratch(run, rows, sizeof *pos);
    for (size_t i = 0; i < n_views && run_ok(run); i++)
        positions(run, pos + i * 2 * n, 0, 2 * n);

    for (size_t l = 0; l < c->n_layers; l++) {
        const struct encoder_layer *w = &e->layers[l];
        rmsnorm(run, &h, &x, &w->attn_norm, c->norm_eps);
        linear(run, &q, &h, &w->q_w, &w->q_b);
        linear(run, &k, &h, &w->k_w, &w->k_b);
        linear(run, &v, &h, &w->v_w, &w->v_b);
        rope(run, &q, c->n_heads, pos, c->rope_theta);
        rope(run, &k, c->n_kv_heads, pos, c->rope_theta);
        attention_prefix(run, &a, &q, &k, &v, c->n_heads, c->n_kv_heads, n_views, n);
        if (l + 1 == c->n_layers) { /* nothing reads what the last layer makes of the image rows */
            keep_queries(run, &h, &x, n, n_views);
            x = h;
            keep_queries(run, &q, &a, n, n_views);
            a = q;
            h = tensor_rows(&y, n_views * n, n_views * n);
            y = tensor_rows(&y, 0, n_views * n);
        }
        linear(run, &y, &a, &w->o_w, NULL);
        add(run, &x, &y);
        rmsnorm(run, &h, &x, &w->ffn_norm, c->norm_eps);
        mlp(run, &y, &h, &w->mlp);
        add(run, &x, &y);
    }
    rmsnorm(run, &out, &x, &e->norm, c->norm_eps);
    arena_restore(run->arena, mark);
    return out;
}
