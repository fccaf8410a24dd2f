/* The public operations of DeepSeek-V4: as in kernel.c, arguments are checked here and bodies are the back end's. */
#include <math.h>

#include "base/checked.h"
#include "kernel/admit.h"

void moe_chosen(struct run *run, struct tensor *y, const struct tensor *x, const struct moe_weights *w,
                const int32_t *ids, const float *weights)
{
    bool fits = is_matrix(y) && is_matrix(x) && same_shape(y, x) && moe_experts_fit(w, x->shape[1]);
    if (!ADMIT(run, "moe_chosen", fits, {"y", y}, {"x", x}) || !ids || !weights)
        return;
    run->kernels->moe_chosen(run, y, x, w, ids, weights);
    trace(run, "moe_chosen", y);
}

void route(struct run *run, const struct tensor *logits, const struct tensor *bias, const struct tensor *table,
           const int32_t *tokens, size_t top_k, float scale, int32_t *ids, float *weights)
{
    size_t n_experts = logits->shape[1];
    bool fits = is_matrix(logits) && top_k > 0 && top_k <= n_experts && n_experts <= INT32_MAX &&
                (!bias || is_vector(bias, n_experts));
    if (fits && table)
        fits = table->dtype == DTYPE_I64 && table->n_dims == 2 && table->shape[1] == top_k && table->stride[1] == 1;
    if (!ADMIT(run, "route", fits, {"logits", logits}, {"bias", bias}, {"table", table}) || !ids || !weights)
        return;
    for (size_t i = 0; table && i < logits->shape[0]; i++)
        if (tokens[i] < 0 || (size_t)tokens[i] >= table->shape[0]) {
            run_fail(run, FATHOM_EINVAL, "route: token id %d at %zu is not in [0, %zu)", tokens[i], i, table->shape[0]);
            return;
        }
    run->kernels->route(run, logits, bias, table, tokens, top_k, scale, ids, weights);
    struct tensor out = tensor_2d(DTYPE_F32, weights, logits->shape[0], top_k);
    trace(run, "route", &out);
}

void rope_pairs(struct run *run, struct tensor *x, size_t n_heads, const int32_t *pos, const float *frequencies,
                size_t n_pairs, bool inverse)
{
    bool fits = is_matrix(x) && n_heads > 0 && x->shape[1] % n_heads == 0 && n_pairs <= x->shape[1] / n_heads / 2;
    if (!ADMIT(run, "rope_pairs", fits, {"x", x}))
        return;
    run->kernels->rope_pairs(run, x, n_heads, pos, frequencies, n_pairs, inverse);
    trace(run, "rope_pairs", x);
}

void hyper_split(struct run *run, struct tensor *h, struct tensor *mix, const struct tensor *x,
                 const struct hyper_weights *w, struct hyper_shape shape)
{
    size_t s = shape.n_streams, n_out = mix ? s * (s + 2) : s;
    bool fits = s > 0 && s <= MAX_STREAMS && is_matrix(h) && is_matrix(x) && h->shape[0] == x->shape[0] &&
                x->shape[1] == s * h->shape[1] && is_weight(&w->fn, n_out, x->shape[1]) && is_vector(&w->base, n_out) &&
                is_vector(&w->scale, mix ? 3 : 1);
    if (fits && mix)
        fits = is_matrix(mix) && mix->shape[0] == x->shape[0] && mix->shape[1] == s * (s + 1);
    if (!ADMIT(run, "hyper_split", fits, {"h", h}, {"mix", mix}, {"x", x}, {"fn", &w->fn}, {"base", &w->base},
               {"scale", &w->scale}))
        return;
    struct arena_mark mark = arena_save(run->arena);
    struct tensor m = run_alloc(run, x->shape[0], n_out);
    linear(run, &m, x, &w->fn, NULL);
    if (run_ok(run))
        run->kernels->hyper_split(run, h, mix, x, &m, w, shape);
    arena_restore(run->arena, mark);
    trace(run, "hyper_split", h);
}

void hyper_merge(struct run *run, struct tensor *x, const struct tensor *u, const struct tensor *mix, size_t n_streams)
{
    bool fits = is_matrix(x) && is_matrix(u) && is_matrix(mix) && n_streams > 0 && n_streams <= MAX_STREAMS &&
                x->shape[0] == u->shape[0] && mix->shape[0] == u->shape[0] && x->shape[1] == n_streams * u->shape[1] &&
                mix->shape[1] == n_streams * (n_streams + 1);
    if (!ADMIT(run, "hyper_merge", fits, {"x", x}, {"u", u}, {"mix", mix}))
        return;
    run->kernels->hyper_merge(run, x, u, mix, n_streams);
    trace(run, "hyper_merge", x);
}

void compress(struct run *run, struct tensor *y, const struct tensor *values, const struct tensor *scores,
              const struct tensor *ape, struct compress_shape shape)
{
    size_t n_rows, width = y->shape[1] * (shape.overlap ? 2 : 1);
    bool fits = is_matrix(y) && is_matrix(values) && is_matrix(scores) && same_shape(values, scores) &&
                shape.ratio > 0 && values->shape[1] == width && is_weight(ape, shape.ratio, width) &&
                ape->dtype == DTYPE_F32 && size_add(y->shape[0], shape.overlap && shape.has_previous, &n_rows) &&
                size_mul(n_rows, shape.ratio, &n_rows) && values->shape[0] >= n_rows;
    if (!ADMIT(run, "compress", fits, {"y", y}, {"values", values}, {"scores", scores}, {"ape", ape}))
        return;
    run->kernels->compress(run, y, values, scores, ape, shape);
    trace(run, "compress", y);
}

void index_scores(struct run *run, struct tensor *scores, const struct tensor *q, const struct tensor *weights,
                  const struct index_keys *keys, size_t pos)
{
    bool fits = is_matrix(scores) && is_matrix(q) && is_matrix(weights) && q->shape[0] == scores->shape[0] &&
                weights->shape[0] == scores->shape[0] && keys->ratio > 0 &&
                q->shape[1] == weights->shape[1] * keys->dim &&
                scores->shape[1] >= (pos + scores->shape[0]) / keys->ratio;
    if (!ADMIT(run, "index_scores", fits, {"scores", scores}, {"q", q}, {"weights", weights}))
        return;
    run->kernels->index_scores(run, scores, q, weights, keys, pos);
    trace(run, "index_scores", scores);
}

void index_topk(struct run *run, int32_t *chosen, const struct tensor *scores, size_t ratio, size_t top_k, size_t pos)
{
    bool fits = is_matrix(scores) && ratio > 0 && top_k > 0 && scores->shape[1] >= (pos + scores->shape[0]) / ratio &&
                scores->shape[1] <= INT32_MAX;
    if (!ADMIT(run, "index_topk", fits, {"scores", scores}) || !chosen)
        return;
    run->kernels->index_topk(run, chosen, scores, ratio, top_k, pos);
    struct tensor out = tensor_2d(DTYPE_I32, chosen, scores->shape[0], top_k);
    trace(run, "index_topk", &out);
}

void attention_sparse(struct run *run, struct tensor *y, const struct tensor *q, const struct tensor *sinks,
                      const struct sparse_keys *keys, size_t n_heads, size_t pos)
{
    size_t n = q->shape[0], n_rows = keys->window.shape[0];
    size_t n_before = pos < keys->n_window - 1 ? pos : keys->n_window - 1; /* what the first query needs */
    bool fits = is_matrix(y) && is_matrix(q) && same_shape(y, q) && n_heads > 0 && q->shape[1] % n_heads == 0 &&
                is_vector(sinks, n_heads) && is_matrix(&keys->window) &&
                keys->window.shape[1] == q->shape[1] / n_heads && keys->n_window > 0 && n_rows >= n &&
                n_rows - n <= pos && n_rows - n >= n_before && keys->n_all <= n;
    if (fits && keys->entries.data)
        fits = is_matrix(&keys->entries) && keys->entries.shape[1] == keys->window.shape[1] && keys->ratio > 0 &&
               keys->entries.shape[0] >= (pos + n) / keys->ratio && (keys->n_all == n || keys->chosen);
    if (!ADMIT(run, "attention_sparse", fits, {"y", y}, {"q", q}, {"sinks", sinks}, {"window", &keys->window}))
        return;
    run->kernels->attention_sparse(run, y, q, sinks, keys, n_heads, pos);
    trace(run, "attention_sparse", y);
}
