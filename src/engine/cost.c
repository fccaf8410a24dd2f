#include "engine/cost.h"

static double gemm(double m, double n, double k) { return 2 * m * n * k; }

double sam_flop(const struct sam_config *c, size_t side)
{
    double g = (double)(side / c->patch), n = g * g, dim = (double)c->dim, half = g / 2, quarter = g / 4;
    double flop = gemm(n, dim, 3.0 * (double)(c->patch * c->patch));
    for (size_t l = 0; l < c->n_layers; l++) {
        double span = c->is_global[l] ? g : (double)c->window; /* keys of a query: span * span */
        flop += gemm(n, 4 * dim, dim) + 2 * gemm(n, (double)c->mlp_dim, dim);
        flop += 2 * gemm(n, span * span, dim) + 2 * gemm(n, span, dim); /* scores and sums; the two bias factors */
    }
    double neck = (double)c->neck_dim, mid = (double)c->mid_dim;
    return flop + gemm(n, neck, dim) + gemm(n, neck, 9 * neck) + gemm(half * half, mid, 9 * neck) +
           gemm(quarter * quarter, (double)c->out_dim, 9 * mid);
}

double clip_flop(const struct clip_config *c, size_t n_image_tokens)
{
    double n = (double)n_image_tokens + 1, dim = (double)c->dim;
    return (double)c->n_layers * (gemm(n, 4 * dim, dim) + 2 * gemm(n, (double)c->mlp_dim, dim) + 4 * n * n * dim);
}

double encoder_flop(const struct encoder_config *c, size_t n_image_tokens)
{
    double n = (double)n_image_tokens, dim = (double)c->dim, head = (double)c->head_dim;
    double q_dim = (double)c->n_heads * head, kv_dim = (double)c->n_kv_heads * head;
    double linear =
        gemm(2 * n, q_dim + 2 * kv_dim, dim) + gemm(2 * n, dim, q_dim) + 3 * gemm(2 * n, (double)c->mlp_dim, dim);
    double keys = n * n + n * n + n * (n + 1) / 2; /* image rows; query rows: the image and the queries so far */
    return (double)c->n_layers * (linear + 4 * keys * q_dim);
}

double decoder_flop(const struct decoder_config *c, size_t pos, size_t n_tok)
{
    double n = (double)n_tok, dim = (double)c->dim, q_dim = (double)(c->n_heads * c->head_dim);
    double kv_dim = (double)(c->n_kv_heads * c->head_dim), keys = n * (double)pos + n * (n + 1) / 2;
    double dense = (double)c->n_dense_layers, sparse = (double)c->n_layers - dense;
    double moe =
        gemm(n, (double)c->n_experts, dim) + 3 * gemm(n, (double)(c->top_k * c->expert_dim + c->shared_dim), dim);
    return (double)c->n_layers * (gemm(n, 2 * q_dim + 2 * kv_dim, dim) + 4 * keys * q_dim) +
           dense * 3 * gemm(n, (double)c->mlp_dim, dim) + sparse * moe;
}

static double bytes(const struct tensor *t)
{
    return t->data ? (double)t->shape[0] * (double)dtype_bytes(t->dtype, t->shape[1]) : 0;
}

static double mlp_bytes(const struct mlp_weights *w) { return bytes(&w->gate) + bytes(&w->up) + bytes(&w->down); }

double decoder_step_bytes(const struct decoder *d, const struct kv_cache *kv, size_t ctx)
{
    double sum = bytes(&d->lm_head) + (double)kv_cache_bytes(kv, ctx);
    for (size_t l = 0; l < d->cfg.n_layers; l++) {
        const struct decoder_layer *w = &d->layers[l];
        sum += bytes(&w->q_w) + bytes(&w->k_w) + bytes(&w->v_w) + bytes(&w->o_w);
        if (l < d->cfg.n_dense_layers)
            sum += mlp_bytes(&w->mlp);
        else
            sum += bytes(&w->moe.router) + (double)d->cfg.top_k * mlp_bytes(&w->moe.experts[0]) +
                   mlp_bytes(&w->moe.shared);
    }
    return sum;
}
