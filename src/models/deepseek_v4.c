/* DeepSeek-V4 (arXiv:2606.19348, spec deepseek-v4 §2), a token's state being n_streams residual streams X:
 *
 *   X = embed[id] in every stream
 *   layers:  h = pre · X;  X = post (x) attention(norm(h)) + comb^T X        hyper-connections (mHC, §2.2)
 *            h = pre · X;  X = post (x) moe(norm(h)) + comb^T X
 *   logits = head(norm(collapse(X)))
 *
 *   attention: q = rope(norm(q_b norm(q_a a))), one key and value kv = rope(norm(kv a)) for all heads; keys are the last
 *              `window` rows and, in layers that compress, entries: every HCA entry, or those CSA entries that the
 *              indexer chooses; rope undone on the output; heads projected in groups (§2.3)
 *   moe:       sqrt(softplus) scores, experts by hash of the token or by biased top-k, one shared expert (§2.1)
 *
 * This is the plain mathematical path: nothing is rounded on the way, unless the state asks for keys that are (nn/v4_rounding.h). */
#include "models/deepseek_v4.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/positions.h"
#include "nn/v4_rounding.h"
#include "weights/bind.h"

/* Index scores that are held at a time. */
#define MAX_SCORES ((size_t)4 << 20)

/* ---- binding ----------------------------------------------------------------------------------------------------- */

static void bind_compressor(struct binder *b, struct v4_compressor *w, const char *name, size_t ratio, size_t entry_dim,
                            size_t dim)
{
    char leaf[64];
    size_t width = ratio == V4_CSA_RATIO ? 2 * entry_dim : entry_dim;
    snprintf(leaf, sizeof leaf, "%s.ape", name);
    bind_matrix(b, &w->ape, leaf, ratio, width);
    snprintf(leaf, sizeof leaf, "%s.wkv.weight", name);
    bind_linear(b, &w->value_w, leaf, width, dim);
    snprintf(leaf, sizeof leaf, "%s.wgate.weight", name);
    bind_linear(b, &w->score_w, leaf, width, dim);
    snprintf(leaf, sizeof leaf, "%s.norm.weight", name);
    bind_vector(b, &w->norm, leaf, entry_dim);
    if (!b->status && w->ape.dtype != DTYPE_F32)
        b->status = fail(b->err, FATHOM_EUNSUPPORTED, "tensor '%s%s.ape' has dtype %s, expected F32", b->prefix, name,
                         dtype_name(w->ape.dtype));
}

static void bind_attention(struct binder *b, struct v4_attention *w, const struct v4_config *c, size_t ratio)
{
    size_t q_dim = c->n_heads * c->head_dim;
    w->ratio = ratio;
    bind_linear(b, &w->q_a, "attn.wq_a.weight", c->q_rank, c->dim);
    bind_vector(b, &w->q_norm, "attn.q_norm.weight", c->q_rank);
    bind_linear(b, &w->q_b, "attn.wq_b.weight", q_dim, c->q_rank);
    bind_linear(b, &w->kv, "attn.wkv.weight", c->head_dim, c->dim);
    bind_vector(b, &w->kv_norm, "attn.kv_norm.weight", c->head_dim);
    bind_vector(b, &w->sinks, "attn.attn_sink", c->n_heads);
    bind_linear(b, &w->o_a, "attn.wo_a.weight", c->o_groups * c->o_rank, q_dim / c->o_groups);
    bind_linear(b, &w->o_b, "attn.wo_b.weight", c->dim, c->o_groups * c->o_rank);
    if (ratio > 0)
        bind_compressor(b, &w->main, "attn.compressor", ratio, c->head_dim, c->dim);
    if (ratio == V4_CSA_RATIO) {
        bind_compressor(b, &w->index, "attn.indexer.compressor", ratio, c->index_head_dim, c->dim);
        bind_linear(b, &w->index_q_b, "attn.indexer.wq_b.weight", c->index_n_heads * c->index_head_dim, c->q_rank);
        bind_linear(b, &w->index_w, "attn.indexer.weights_proj.weight", c->index_n_heads, c->dim);
    }
}

/* part: "hc_attn", "hc_ffn" or "hc_head"; the head has neither post nor comb. */
static void bind_hyper(struct binder *b, struct hyper_weights *w, const char *part, const struct v4_config *c,
                       bool is_head)
{
    char leaf[32];
    size_t s = c->n_streams, n_out = is_head ? s : s * (s + 2);
    snprintf(leaf, sizeof leaf, "%s_fn", part);
    bind_matrix(b, &w->fn, leaf, n_out, s * c->dim);
    snprintf(leaf, sizeof leaf, "%s_base", part);
    bind_vector(b, &w->base, leaf, n_out);
    snprintf(leaf, sizeof leaf, "%s_scale", part);
    bind_vector(b, &w->scale, leaf, is_head ? 1 : 3);
}

static void bind_expert(struct binder *b, struct mlp_weights *w, const char *name, size_t hidden, size_t dim)
{
    char leaf[64];
    snprintf(leaf, sizeof leaf, "ffn.%s.w1.weight", name);
    bind_linear(b, &w->gate, leaf, hidden, dim);
    snprintf(leaf, sizeof leaf, "ffn.%s.w3.weight", name);
    bind_linear(b, &w->up, leaf, hidden, dim);
    snprintf(leaf, sizeof leaf, "ffn.%s.w2.weight", name);
    bind_linear(b, &w->down, leaf, dim, hidden);
}

/* tid2eid, whose integers are looked at when a token comes by. */
static void bind_table(struct binder *b, struct tensor *out, const struct v4_config *c)
{
    char name[192], shape[96];
    snprintf(name, sizeof name, "%sffn.gate.tid2eid", b->prefix);
    const struct weight *w = weights_find(b->weights, name);
    if (b->status)
        return;
    if (!w)
        b->status = fail(b->err, FATHOM_EFORMAT, "tensor '%s' is missing", name);
    else if (w->tensor.n_dims == 0 || w->tensor.dtype != DTYPE_I64)
        b->status = fail(b->err, FATHOM_EUNSUPPORTED, "tensor '%s' has dtype %s, expected I64", name, w->file_dtype);
    else if (w->tensor.n_dims != 2 || w->tensor.shape[0] != c->vocab_size || w->tensor.shape[1] != c->top_k)
        b->status = fail(b->err, FATHOM_EFORMAT, "tensor '%s' has shape %s, expected [%zu, %zu]", name,
                         tensor_shape_text(&w->tensor, shape), c->vocab_size, c->top_k);
    else
        *out = w->tensor;
}

static void bind_moe(struct binder *b, struct v4_layer *w, struct mlp_weights *experts, const struct v4_config *c,
                     bool is_hash)
{
    char name[32];
    bind_linear(b, &w->gate, "ffn.gate.weight", c->n_experts, c->dim);
    if (is_hash)
        bind_table(b, &w->table, c);
    else
        bind_vector(b, &w->bias, "ffn.gate.bias", c->n_experts);
    bind_expert(b, &w->moe.shared, "shared_experts", c->n_shared * c->expert_dim, c->dim);
    for (size_t e = 0; e < c->n_experts; e++) {
        snprintf(name, sizeof name, "experts.%zu", e);
        bind_expert(b, &experts[e], name, c->expert_dim, c->dim);
    }
    w->moe.experts = experts;
    w->moe.n_experts = c->n_experts;
    w->moe.top_k = c->top_k;
    w->moe.swiglu_limit = c->swiglu_limit;
}

/* Rotation frequencies: base^(-2 i / dim), with YaRN slowed by its factor where a turn is long (§2.5). */
static void fill_frequencies(float *f, const struct v4_config *c, double base, double factor)
{
    static const double pi = 3.14159265358979323846;
    double dim = (double)c->rope_dim;
    double low = floor(dim * log(c->yarn_context / (c->yarn_beta_fast * 2 * pi)) / (2 * log(base)));
    double high = ceil(dim * log(c->yarn_context / (c->yarn_beta_slow * 2 * pi)) / (2 * log(base)));
    low = low < 0 ? 0 : low;
    high = high > dim - 1 ? dim - 1 : high;
    for (size_t i = 0; i < c->rope_dim / 2; i++) {
        double plain = pow(base, -2.0 * (double)i / dim);
        double slowed = high > low ? ((double)i - low) / (high - low) : (double)i > low;
        slowed = slowed < 0 ? 0 : slowed > 1 ? 1 : slowed;
        f[i] = (float)(plain / factor * slowed + plain * (1 - slowed));
    }
}

static enum fathom_status make_tables(struct v4 *m, struct fathom_err *err)
{
    const struct v4_config *c = &m->cfg;
    size_t n = c->rope_dim / 2;
    m->frequencies[0] = malloc(n * sizeof(float));
    m->frequencies[1] = malloc(n * sizeof(float));
    m->ones = malloc(c->head_dim * sizeof(float));
    if (!m->frequencies[0] || !m->frequencies[1] || !m->ones)
        return fail_nomem(err, c->head_dim * sizeof(float), "the rotation tables");
    fill_frequencies(m->frequencies[0], c, c->rope_theta, 1);
    fill_frequencies(m->frequencies[1], c, c->compress_rope_theta, c->yarn_factor);
    for (size_t i = 0; i < c->head_dim; i++)
        m->ones[i] = 1.0f;
    return FATHOM_OK;
}

enum fathom_status v4_bind(struct v4 *m, const struct v4_config *cfg, const struct weights *w, struct fathom_err *err)
{
    struct binder b = binder_init(w, err);
    const struct v4_config *c = &m->cfg;

    memset(m, 0, sizeof *m);
    m->cfg = *cfg;
    if (make_tables(m, err))
        return FATHOM_ENOMEM;
    m->experts = calloc(c->n_layers * c->n_experts, sizeof *m->experts);
    if (!m->experts)
        return fail_nomem(err, c->n_layers * c->n_experts * sizeof *m->experts, "the list of experts");
    bind_matrix(&b, &m->embed, "embed.weight", c->vocab_size, c->dim);
    for (size_t l = 0; l < c->n_layers; l++) {
        struct v4_layer *k = &m->layers[l];
        bind_prefix(&b, "layers.%zu.", l);
        bind_hyper(&b, &k->attn_hyper, "hc_attn", c, false);
        bind_vector(&b, &k->attn_norm, "attn_norm.weight", c->dim);
        bind_attention(&b, &k->attn, c, c->ratio[l]);
        bind_hyper(&b, &k->ffn_hyper, "hc_ffn", c, false);
        bind_vector(&b, &k->ffn_norm, "ffn_norm.weight", c->dim);
        bind_moe(&b, k, m->experts + l * c->n_experts, c, l < c->n_hash_layers);
    }
    bind_prefix(&b, "%s", "");
    bind_hyper(&b, &m->head_hyper, "hc_head", c, true);
    bind_vector(&b, &m->norm, "norm.weight", c->dim);
    bind_linear(&b, &m->head, "head.weight", c->vocab_size, c->dim);
    return b.status;
}

enum fathom_status v4_bind_attention(struct v4 *m, const struct v4_config *cfg, size_t layer, const struct weights *w,
                                     struct fathom_err *err)
{
    struct binder b = binder_init(w, err);
    memset(m, 0, sizeof *m);
    m->cfg = *cfg;
    if (make_tables(m, err))
        return FATHOM_ENOMEM;
    bind_prefix(&b, "layers.%zu.", layer);
    bind_attention(&b, &m->layers[layer].attn, &m->cfg, m->cfg.ratio[layer]);
    return b.status;
}

void v4_release(struct v4 *m)
{
    free(m->frequencies[0]);
    free(m->frequencies[1]);
    free(m->ones);
    free(m->experts);
    memset(m, 0, sizeof *m);
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

struct attend {
    const struct v4 *m;
    const struct v4_attention *w;
    struct v4_state *state;
    struct v4_layer_state *s;
    const float *frequencies;
    size_t n_pairs, pos, n;
    const int32_t *positions; /* [n] */
};

/* qr [n, q_rank], which the indexer wants too, and q [n, n_heads * head_dim]. */
static void queries(struct run *run, const struct attend *at, struct tensor *qr, struct tensor *q,
                    const struct tensor *a)
{
    const struct v4_config *c = &at->m->cfg;
    struct tensor ones = tensor_1d(DTYPE_F32, at->m->ones, c->head_dim);
    struct tensor heads = tensor_2d(DTYPE_F32, q->data, at->n * c->n_heads, c->head_dim);
    linear(run, qr, a, &at->w->q_a, NULL);
    rmsnorm(run, qr, qr, &at->w->q_norm, c->norm_eps);
    linear(run, q, qr, &at->w->q_b, NULL);
    rmsnorm(run, &heads, &heads, &ones, c->norm_eps);
    rope_pairs(run, q, c->n_heads, at->positions, at->frequencies, at->n_pairs, false);
}

static bool is_official(const struct attend *at) { return at->state->numerics == V4_NUMERICS_OFFICIAL; }

/* The raw keys that the chunk sees: the last rows before it, from the ring, then its own. */
static struct tensor window_rows(struct run *run, const struct attend *at, const struct tensor *a)
{
    const struct v4_config *c = &at->m->cfg;
    size_t d = c->head_dim, n_before = at->pos < c->window - 1 ? at->pos : c->window - 1;
    struct tensor rows = run_alloc(run, n_before + at->n, d), own = tensor_rows(&rows, n_before, at->n);
    for (size_t i = 0; run_ok(run) && i < n_before; i++)
        memcpy(tensor_row(&rows, i), at->s->window + (at->pos - n_before + i) % c->window * d, d * sizeof(float));
    linear(run, &own, a, &at->w->kv, NULL);
    rmsnorm(run, &own, &own, &at->w->kv_norm, c->norm_eps);
    rope_pairs(run, &own, 1, at->positions, at->frequencies, at->n_pairs, false);
    for (size_t i = 0; run_ok(run) && is_official(at) && i < at->n; i++)
        v4_round_key(tensor_row(&own, i), d, c->rope_dim);
    return rows;
}

/* The chunk's last rows, when all its queries are done. */
static void keep_window(const struct attend *at, const struct tensor *rows)
{
    size_t window = at->m->cfg.window, d = at->m->cfg.head_dim, n = at->n < window ? at->n : window;
    for (size_t i = 0; i < n; i++) {
        size_t back = n - i; /* rows from the end */
        memcpy(at->s->window + (at->pos + at->n - back) % window * d, tensor_row(rows, rows->shape[0] - back),
               d * sizeof(float));
    }
}

/* Entries that the chunk's tokens complete, of the main compressor and of the indexer's. */
static void append_entries(struct run *run, const struct attend *at, const struct tensor *a)
{
    const struct v4_config *c = &at->m->cfg;
    size_t first = at->pos / at->w->ratio;
    struct arena_mark mark = arena_save(run->arena);
    struct tensor y = v4_compress(run, &at->w->main, &at->s->main, a, at->pos, c->norm_eps, at->frequencies,
                                  at->n_pairs, is_official(at) ? V4_ENTRY_KEY : V4_ENTRY_PLAIN);
    if (run_ok(run) && y.shape[0] > 0)
        memcpy(at->s->entries + first * c->head_dim, y.data, tensor_elements(&y) * sizeof(float));
    if (at->w->ratio == V4_CSA_RATIO) {
        y = v4_compress(run, &at->w->index, &at->s->index, a, at->pos, c->norm_eps, at->frequencies, at->n_pairs,
                        is_official(at) ? V4_ENTRY_INDEX : V4_ENTRY_PLAIN);
        if (run_ok(run))
            v4_store_keys(&at->s->keys, &y, first);
    }
    arena_restore(run->arena, mark);
}

/* The chunk's first queries, which have no more candidates than would be chosen, need no choice (§4). */
static size_t queries_without_choice(const struct attend *at)
{
    size_t first_scored = V4_CSA_RATIO * (at->m->cfg.index_top_k + 1) - 1;
    if (at->w->ratio != V4_CSA_RATIO || at->pos + at->n <= first_scored)
        return at->n;
    return first_scored > at->pos ? first_scored - at->pos : 0;
}

/* The indexer (§2.8): entries [n - n_skip, index_top_k] of the queries after the first n_skip. */
static int32_t *choose_entries(struct run *run, const struct attend *at, const struct tensor *a,
                               const struct tensor *qr, size_t n_skip)
{
    const struct v4_config *c = &at->m->cfg;
    size_t n = at->n - n_skip, pos = at->pos + n_skip, n_max = (at->pos + at->n) / V4_CSA_RATIO;
    int32_t *chosen = run_scratch(run, n * c->index_top_k, sizeof *chosen);
    struct arena_mark mark = arena_save(run->arena);
    struct tensor qr_n = tensor_rows(qr, n_skip, n), a_n = tensor_rows(a, n_skip, n);
    struct tensor q = run_alloc(run, n, c->index_n_heads * c->index_head_dim), w = run_alloc(run, n, c->index_n_heads);
    size_t step = n_max > 0 && MAX_SCORES / n_max < n ? MAX_SCORES / n_max + 1 : n;
    struct tensor scores = run_alloc(run, step, n_max);
    float scale = 1.0f / sqrtf((float)(c->index_head_dim * c->index_n_heads));

    linear(run, &q, &qr_n, &at->w->index_q_b, NULL);
    rope_pairs(run, &q, c->index_n_heads, at->positions + n_skip, at->frequencies, at->n_pairs, false);
    for (size_t i = 0; run_ok(run) && is_official(at) && i < n * c->index_n_heads; i++)
        v4_round_index((float *)q.data + i * c->index_head_dim, c->index_head_dim);
    linear(run, &w, &a_n, &at->w->index_w, NULL);
    for (size_t i = 0; run_ok(run) && i < n * c->index_n_heads; i++)
        ((float *)w.data)[i] *= scale;
    for (size_t first = 0; first < n && run_ok(run); first += step) {
        size_t m = n - first < step ? n - first : step;
        struct tensor q_m = tensor_rows(&q, first, m), w_m = tensor_rows(&w, first, m);
        struct tensor scores_m = tensor_rows(&scores, 0, m);
        index_scores(run, &scores_m, &q_m, &w_m, &at->s->keys, pos + first);
        index_topk(run, chosen + first * c->index_top_k, &scores_m, V4_CSA_RATIO, c->index_top_k, pos + first);
    }
    for (size_t i = 0; i < n; i++)
        at->state->stats.scored_candidates += (pos + i + 1) / V4_CSA_RATIO;
    arena_restore(run->arena, mark);
    return chosen;
}

/* Groups of heads projected apart, then together (§2.11). */
static void project(struct run *run, const struct attend *at, struct tensor *u, const struct tensor *o)
{
    const struct v4_config *c = &at->m->cfg;
    size_t group = o->shape[1] / c->o_groups;
    struct tensor low = run_alloc(run, at->n, c->o_groups * c->o_rank);
    for (size_t g = 0; g < c->o_groups; g++) {
        struct tensor y = tensor_cols(&low, g * c->o_rank, c->o_rank), x = tensor_cols(o, g * group, group);
        struct tensor w = tensor_rows(&at->w->o_a, g * c->o_rank, c->o_rank);
        linear(run, &y, &x, &w, NULL);
    }
    linear(run, u, &low, &at->w->o_b, NULL);
}

void v4_attend(struct run *run, const struct v4 *m, size_t layer, struct v4_state *state, struct tensor *u,
               const struct tensor *a, size_t pos)
{
    const struct v4_config *c = &m->cfg;
    const struct v4_attention *w = &m->layers[layer].attn;
    size_t n = a->shape[0], q_dim = c->n_heads * c->head_dim;
    struct arena_mark mark = arena_save(run->arena);
    struct tensor qr = run_alloc(run, n, c->q_rank), q = run_alloc(run, n, q_dim), o = run_alloc(run, n, q_dim);
    int32_t *positions = run_scratch(run, n, sizeof *positions);
    struct attend at = {.m = m, .w = w, .state = state, .s = &state->layers[layer], .pos = pos, .n = n};
    if (!run_ok(run)) {
        arena_restore(run->arena, mark);
        return;
    }
    position_ids(positions, pos, n);
    at.positions = positions;
    at.frequencies = m->frequencies[w->ratio > 0];
    at.n_pairs = c->rope_dim / 2;

    queries(run, &at, &qr, &q, a);
    struct sparse_keys keys = {.window = window_rows(run, &at, a), .n_window = c->window, .n_all = n};
    if (w->ratio > 0) {
        append_entries(run, &at, a);
        keys.entries = tensor_2d(DTYPE_F32, at.s->entries, (pos + n) / w->ratio, c->head_dim);
        keys.ratio = w->ratio;
    }
    if (w->ratio == V4_CSA_RATIO) {
        keys.n_all = state->indexer == V4_INDEXER_ALWAYS ? 0 : queries_without_choice(&at);
        keys.top_k = c->index_top_k;
        if (keys.n_all < n)
            keys.chosen = choose_entries(run, &at, a, &qr, keys.n_all);
        state->stats.indexed_queries += n - keys.n_all;
        state->stats.unindexed_queries += keys.n_all;
    }
    attention_sparse(run, &o, &q, &w->sinks, &keys, c->n_heads, pos);
    rope_pairs(run, &o, c->n_heads, positions, at.frequencies, at.n_pairs, true);
    project(run, &at, u, &o);
    if (run_ok(run))
        keep_window(&at, &keys.window);
    arena_restore(run->arena, mark);
}

/* ---- the network ------------------------------------------------------------------------------------------------- */

static void mixture(struct run *run, const struct v4 *m, const struct v4_layer *w, struct tensor *u,
                    const struct tensor *x, const int32_t *ids)
{
    const struct v4_config *c = &m->cfg;
    size_t n = x->shape[0];
    struct arena_mark mark = arena_save(run->arena);
    struct tensor logits = run_alloc(run, n, c->n_experts);
    int32_t *experts = run_scratch(run, n * c->top_k, sizeof *experts);
    float *weights = run_scratch(run, n * c->top_k, sizeof *weights);
    linear(run, &logits, x, &w->gate, NULL);
    route(run, &logits, w->bias.data ? &w->bias : NULL, w->table.data ? &w->table : NULL, ids, c->top_k,
          c->routed_scale, experts, weights);
    moe_chosen(run, u, x, &w->moe, experts, weights);
    arena_restore(run->arena, mark);
}

void v4_embed(struct run *run, const struct v4 *m, struct tensor *x, const int32_t *ids)
{
    const struct v4_config *c = &m->cfg;
    struct tensor first = tensor_cols(x, 0, c->dim);
    embed(run, &first, &m->embed, ids);
    for (size_t i = 0; run_ok(run) && i < x->shape[0]; i++)
        for (size_t s = 1; s < c->n_streams; s++)
            memcpy((float *)tensor_row(x, i) + s * c->dim, tensor_row(x, i), c->dim * sizeof(float));
}

void v4_forward(struct run *run, const struct v4 *m, struct v4_state *state, struct tensor *x, const int32_t *ids)
{
    const struct v4_config *c = &m->cfg;
    struct hyper_shape shape = {c->n_streams, c->sinkhorn_iters, c->hyper_eps, c->norm_eps};
    size_t n = x->shape[0];
    if (run->act != FATHOM_F32)
        run_fail(run, FATHOM_EUNSUPPORTED, "DeepSeek-V4 has float32 activations only");
    if (state->numerics == V4_NUMERICS_OFFICIAL && !v4_can_round_index(c->index_head_dim))
        run_fail(run, FATHOM_EUNSUPPORTED, "official numerics want an index_head_dim that is a power of two, not %zu",
                 c->index_head_dim);
    if (n > state->capacity - state->n_tok)
        run_fail(run, FATHOM_ELIMIT, "%zu tokens after %zu do not fit the context of %zu", n, state->n_tok,
                 state->capacity);
    struct arena_mark mark = arena_save(run->arena);
    struct tensor h = run_alloc(run, n, c->dim), u = run_alloc(run, n, c->dim);
    struct tensor mix = run_alloc(run, n, c->n_streams * (c->n_streams + 1));

    for (size_t l = 0; l < c->n_layers && run_ok(run); l++) {
        const struct v4_layer *w = &m->layers[l];
        hyper_split(run, &h, &mix, x, &w->attn_hyper, shape);
        rmsnorm(run, &h, &h, &w->attn_norm, c->norm_eps);
        v4_attend(run, m, l, state, &u, &h, state->n_tok);
        hyper_merge(run, x, &u, &mix, c->n_streams);
        hyper_split(run, &h, &mix, x, &w->ffn_hyper, shape);
        rmsnorm(run, &h, &h, &w->ffn_norm, c->norm_eps);
        mixture(run, m, w, &u, &h, ids);
        hyper_merge(run, x, &u, &mix, c->n_streams);
    }
    if (run_ok(run))
        state->n_tok += n;
    arena_restore(run->arena, mark);
}

void v4_logits(struct run *run, const struct v4 *m, struct tensor *logits, const struct tensor *x)
{
    const struct v4_config *c = &m->cfg;
    struct hyper_shape shape = {c->n_streams, c->sinkhorn_iters, c->hyper_eps, c->norm_eps};
    struct arena_mark mark = arena_save(run->arena);
    struct tensor h = run_alloc(run, x->shape[0], c->dim);
    hyper_split(run, &h, NULL, x, &m->head_hyper, shape);
    rmsnorm(run, &h, &h, &m->norm, c->norm_eps);
    linear(run, logits, &h, &m->head, NULL);
    arena_restore(run->arena, mark);
}
