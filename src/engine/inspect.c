/* An account of a model for people and programs: kind, sizes, memory, tensors. */
#include <string.h>

#include "base/strbuf.h"
#include "engine/context.h"

static const char *kind_name(enum model_kind kind)
{
    switch (kind) {
    case MODEL_OCR1: return "DeepSeek-OCR";
    case MODEL_OCR2: return "DeepSeek-OCR-2";
    case MODEL_V4: return "DeepSeek-V4";
    }
    return "unknown";
}

struct totals {
    double parameters;
    size_t bytes;
};

static size_t tensor_bytes(const struct tensor *t)
{
    size_t rows = 1;
    for (int i = 0; i + 1 < t->n_dims; i++)
        rows *= t->shape[i];
    return rows * dtype_bytes(t->dtype, t->shape[t->n_dims - 1]);
}

static struct totals sum_weights(const struct weights *w)
{
    struct totals sum = {0};
    for (size_t i = 0; i < weights_count(w); i++) {
        const struct tensor *t = &weights_at(w, i)->tensor;
        sum.parameters += (double)tensor_elements(t);
        sum.bytes += tensor_bytes(t);
    }
    return sum;
}

/* A context of n_ctx tokens in float32. */
static size_t cache_bytes(const struct decoder_config *c, size_t n_ctx)
{
    return c->n_layers * 2 * c->n_kv_heads * c->head_dim * sizeof(float) * n_ctx;
}

static void write_text(struct strbuf *s, const struct fathom_model *m, struct totals sum)
{
    const struct sam_config *sam = &m->config.sam;
    const struct clip_config *clip = &m->config.clip;
    const struct encoder_config *enc = &m->config.encoder;
    const struct decoder_config *dec = &m->config.decoder;
    const struct view_config *view = &m->config.view;
    char shape[96];

    strbuf_addf(s, "%s\n", kind_name(m->config.kind));
    strbuf_addf(s, "  vision tower  %zu wide, %zu layers, %zu heads, windows of %zu, %zu channels out\n", sam->dim,
                sam->n_layers, sam->n_heads, sam->window, sam->out_dim);
    if (m->config.kind == MODEL_OCR1)
        strbuf_addf(s, "  CLIP body     %zu wide, %zu layers, %zu heads, mlp %zu\n", clip->dim, clip->n_layers,
                    clip->n_heads, clip->mlp_dim);
    else
        strbuf_addf(s, "  encoder       %zu wide, %zu layers, %zu heads (%zu for keys), mlp %zu, rope theta %g\n",
                    enc->dim, enc->n_layers, enc->n_heads, enc->n_kv_heads, enc->mlp_dim, (double)enc->rope_theta);
    strbuf_addf(s, "  decoder       %zu wide, %zu layers (%zu dense), %zu heads of %zu, mlp %zu, rope theta %g\n",
                dec->dim, dec->n_layers, dec->n_dense_layers, dec->n_heads, dec->head_dim, dec->mlp_dim,
                (double)dec->rope_theta);
    strbuf_addf(s, "  experts       %zu of %zu a token, %zu wide; shared %zu wide\n", dec->top_k, dec->n_experts,
                dec->expert_dim, dec->shared_dim);
    strbuf_addf(s, "  vocabulary    %zu tokens, context %zu\n", dec->vocab_size, dec->n_ctx);
    if (view->tiles)
        strbuf_addf(s, "  views         one of %zu px and, for larger pages, %zu to %zu tiles of %zu px\n",
                    view->base_side, view->min_tiles, view->max_tiles, view->tile_side);
    else
        strbuf_addf(s, "  views         one of %zu px\n", view->base_side);
    strbuf_addf(s, "  parameters    %.0f\n", sum.parameters);
    strbuf_addf(s, "memory\n  weights       %.1f MiB, mapped\n", (double)sum.bytes / 0x1p20);
    strbuf_addf(s, "  cache         %.1f KiB a token, %.1f MiB for a full context\n",
                (double)cache_bytes(dec, 1) / 0x1p10, (double)cache_bytes(dec, dec->n_ctx) / 0x1p20);
    strbuf_addf(s, "tensors (%zu)\n", weights_count(m->weights));
    for (size_t i = 0; i < weights_count(m->weights); i++) {
        const struct weight *w = weights_at(m->weights, i);
        strbuf_addf(s, "  %-5s %-22s %s\n", dtype_name(w->tensor.dtype), tensor_shape_text(&w->tensor, shape), w->name);
    }
}

static void write_json(struct strbuf *s, const struct fathom_model *m, struct totals sum)
{
    const struct decoder_config *dec = &m->config.decoder;
    char shape[96];

    strbuf_addf(s,
                "{\"kind\":\"%s\",\"parameters\":%.0f,\"weight_bytes\":%zu,\"cache_bytes_per_token\":%zu,\"n_ctx\":%zu,"
                "\"vocab_size\":%zu,\"tensors\":[",
                kind_name(m->config.kind), sum.parameters, sum.bytes, cache_bytes(dec, 1), dec->n_ctx, dec->vocab_size);
    for (size_t i = 0; i < weights_count(m->weights); i++) {
        const struct weight *w = weights_at(m->weights, i);
        strbuf_addf(s, "%s{\"name\":", i ? "," : "");
        strbuf_add_json(s, w->name, strlen(w->name));
        strbuf_addf(s, ",\"dtype\":\"%s\",\"shape\":%s}", dtype_name(w->tensor.dtype),
                    tensor_shape_text(&w->tensor, shape));
    }
    strbuf_addf(s, "]}\n");
}

enum fathom_status fathom_model_inspect(const struct fathom_model *model, bool json, fathom_write_fn *write, void *user,
                                        struct fathom_err *err)
{
    struct strbuf s = {0};
    struct totals sum = {0};
    enum fathom_status status = FATHOM_OK;

    if (!model->v4)
        sum = sum_weights(model->weights);
    if (model->v4)
        model_write_v4(&s, model, json);
    else if (json)
        write_json(&s, model, sum);
    else
        write_text(&s, model, sum);
    if (s.failed)
        status = fail_nomem(err, s.n, "the account of the model");
    else if (!write(user, strbuf_text(&s), s.n))
        status = fail(err, FATHOM_ECANCELLED, "cancelled");
    strbuf_free(&s);
    return status;
}
