/* DeepSeek-3B-MoE, the decoder of DeepSeek-OCR and OCR-2 (arXiv:2510.18234 §3.3, spec deepseek-ocr §4):
 *
 *   x = embed_tokens[ids]
 *   12 layers:  x += o(attention(rope(q), rope(k), v)), causal, over norm(x)
 *               x += mlp(norm(x)) in the first layer, moe(norm(x)) in the others:
 *                    the 6 likeliest of 64 experts, weighted by their probability as it is, plus a shared one
 *   logits = lm_head(norm(x))
 */
#include "models/deepseek_decoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weights/bind.h"

static void bind_mlp(struct binder *b, struct mlp_weights *w, const char *name, size_t hidden, size_t dim)
{
    char gate[96], up[96], down[96];
    snprintf(gate, sizeof gate, "%s.gate_proj.weight", name);
    snprintf(up, sizeof up, "%s.up_proj.weight", name);
    snprintf(down, sizeof down, "%s.down_proj.weight", name);
    bind_matrix(b, &w->gate, gate, hidden, dim);
    bind_matrix(b, &w->up, up, hidden, dim);
    bind_matrix(b, &w->down, down, dim, hidden);
}

static void bind_moe(struct binder *b, struct moe_weights *w, struct mlp_weights *experts,
                     const struct decoder_config *cfg)
{
    char name[48];
    bind_matrix(b, &w->router, "mlp.gate.weight", cfg->n_experts, cfg->dim);
    for (size_t e = 0; e < cfg->n_experts; e++) {
        snprintf(name, sizeof name, "mlp.experts.%zu", e);
        bind_mlp(b, &experts[e], name, cfg->expert_dim, cfg->dim);
    }
    if (cfg->shared_dim)
        bind_mlp(b, &w->shared, "mlp.shared_experts", cfg->shared_dim, cfg->dim);
    w->experts = experts;
    w->n_experts = cfg->n_experts;
    w->top_k = cfg->top_k;
    w->norm_topk = cfg->norm_topk;
    w->routed_scale = cfg->routed_scale;
}

enum fathom_status decoder_bind(struct decoder *d, const struct decoder_config *cfg, const struct weights *w,
                                struct fathom_err *err)
{
    struct binder b = binder_init(w, err);
    size_t dim = cfg->dim, q_dim = cfg->n_heads * cfg->head_dim, kv_dim = cfg->n_kv_heads * cfg->head_dim;

    d->cfg = *cfg;
    d->experts = calloc(cfg->n_layers * cfg->n_experts + 1, sizeof *d->experts);
    if (!d->experts)
        return fail_nomem(err, cfg->n_layers * cfg->n_experts * sizeof *d->experts, "the list of experts");
    bind_matrix(&b, &d->embed_tokens, "model.embed_tokens.weight", cfg->vocab_size, dim);
    for (size_t l = 0; l < cfg->n_layers; l++) {
        struct decoder_layer *k = &d->layers[l];
        bind_prefix(&b, "model.layers.%zu.", l);
        bind_vector(&b, &k->attn_norm, "input_layernorm.weight", dim);
        bind_matrix(&b, &k->q_w, "self_attn.q_proj.weight", q_dim, dim);
        bind_matrix(&b, &k->k_w, "self_attn.k_proj.weight", kv_dim, dim);
        bind_matrix(&b, &k->v_w, "self_attn.v_proj.weight", kv_dim, dim);
        bind_matrix(&b, &k->o_w, "self_attn.o_proj.weight", dim, q_dim);
        bind_vector(&b, &k->ffn_norm, "post_attention_layernorm.weight", dim);
        if (l < cfg->n_dense_layers)
            bind_mlp(&b, &k->mlp, "mlp", cfg->mlp_dim, dim);
        else
            bind_moe(&b, &k->moe, d->experts + l * cfg->n_experts, cfg);
    }
    bind_prefix(&b, "%s", "");
    bind_vector(&b, &d->norm, "model.norm.weight", dim);
    bind_matrix(&b, &d->lm_head, "lm_head.weight", cfg->vocab_size, dim);
    return b.status;
}

void decoder_release(struct decoder *d)
{
    free(d->experts);
    d->experts = NULL;
}

/* y = o(attention(rope(q h), rope(k h), v h)); h [n, dim] is the normed input at positions pos, from `first` on. */
static void attention(struct run *run, const struct decoder *d, const struct decoder_layer *w, struct kv_layer *kv,
                      struct tensor *y, const struct tensor *h, const int32_t *pos, size_t first)
{
    const struct decoder_config *c = &d->cfg;
    size_t n = h->shape[0], q_dim = c->n_heads * c->head_dim, kv_dim = c->n_kv_heads * c->head_dim;
    struct arena_mark mark = arena_save(run->arena);
    struct tensor q = run_alloc(run, n, q_dim), k = run_alloc(run, n, kv_dim), v = run_alloc(run, n, kv_dim);
    struct tensor a = run_alloc(run, n, q_dim);

    linear(run, &q, h, &w->q_w, NULL);
    linear(run, &k, h, &w->k_w, NULL);
    linear(run, &v, h, &w->v_w, NULL);
    rope(run, &q, c->n_heads, pos, c->rope_theta);
    rope(run, &k, c->n_kv_heads, pos, c->rope_theta);
    attention_causal(run, &a, &q, &k, &v, kv, c->n_heads, first);
    linear(run, y, &a, &w->o_w, NULL);
    arena_restore(run->arena, mark);
}

void decoder_forward(struct run *run, const struct decoder *d, struct kv_cache *kv, struct tensor *x)
{
    const struct decoder_config *c = &d->cfg;
    size_t n = x->shape[0];
    struct arena_mark mark = arena_save(run->arena);
    struct tensor h = run_alloc(run, n, c->dim), y = run_alloc(run, n, c->dim);
    int32_t *pos = run_scratch(run, n, sizeof *pos);
    positions(run, pos, kv->n_tok, n);

    for (size_t l = 0; l < c->n_layers; l++) {
        const struct decoder_layer *w = &d->layers[l];
        rmsnorm(run, &h, x, &w->attn_norm, c->norm_eps);
        attention(run, d, w, &kv->layers[l], &y, &h, pos, kv->n_tok);
        add(run, x, &y);
        rmsnorm(run, &h, x, &w->ffn_norm, c->norm_eps);
        if (l < c->n_dense_layers)
            mlp(run, &y, &h, &w->mlp);
        else
            moe(run, &y, &h, &w->moe);
        add(run, x, &y);
    }
    kv->n_tok += n;
    arena_restore(run->arena, mark);
}

void decoder_logits(struct run *run, const struct decoder *d, struct tensor *logits, const struct tensor *x)
{
    struct arena_mark mark = arena_save(run->arena);
    struct tensor h = run_alloc(run, x->shape[0], d->cfg.dim);
    rmsnorm(run, &h, x, &d->norm, d->cfg.norm_eps);
    linear(run, logits, &h, &d->lm_head, NULL);
    arena_restore(run->arena, mark);
}
