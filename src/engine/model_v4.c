/* DeepSeek-V4 folders: opening, and the account of one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mapfile.h"
#include "engine/model.h"
#include "text/chat_prompt.h"

bool model_is_v4(const char *dir)
{
    char *path = NULL;
    bool is = !path_join(&path, dir, "config.json", NULL) && v4_config_is(path);
    free(path);
    return is;
}

static enum fathom_status read_config(struct v4_config *c, const char *dir, struct fathom_err *err)
{
    char *path;
    enum fathom_status status = path_join(&path, dir, "config.json", err);
    if (!status)
        status = v4_config_read(c, path, err);
    free(path);
    return status;
}

static enum fathom_status open_tokenizer(struct fathom_model *m, const char *dir, struct fathom_err *err)
{
    char *path;
    enum fathom_status status = path_join(&path, dir, "tokenizer.json", err);
    if (!status)
        status = tokenizer_open(&m->tokenizer, path, err);
    if (!status && tokenizer_size(m->tokenizer) > m->v4->cfg.vocab_size)
        status = fail(err, FATHOM_EFORMAT, "'%s' has %zu tokens, the model only %zu", path,
                      tokenizer_size(m->tokenizer), m->v4->cfg.vocab_size);
    if (!status && tokenizer_find(m->tokenizer, CHAT_END) < 0)
        status = fail(err, FATHOM_EFORMAT, "'%s' has no token '%s'", path, CHAT_END);
    free(path);
    return status;
}

enum fathom_status model_open_v4(struct fathom_model **out, const char *dir, struct fathom_err *err)
{
    struct v4_config c;
    struct fathom_model *m = calloc(1, sizeof *m);
    enum fathom_status status;
    if (!m || !(m->v4 = calloc(1, sizeof *m->v4))) {
        free(m);
        return fail_nomem(err, sizeof *m->v4, "the model");
    }
    m->config.kind = MODEL_V4;
    status = read_config(&c, dir, err);
    if (!status)
        status = weights_open(&m->weights, dir, err);
    if (!status && (status = v4_bind(m->v4, &c, m->weights, err)))
        fail_at(err, "'%s': ", dir);
    if (!status)
        status = open_tokenizer(m, dir, err);
    if (status)
        fathom_model_close(m);
    else
        *out = m;
    return status;
}

/* ---- the account --------------------------------------------------------------------------------------------------- */

/* Bytes of state that a token adds, averaged over whole windows, and those that any sequence has. */
static void state_bytes(const struct v4_config *c, double *per_token, double *constant)
{
    *per_token = 0;
    *constant = 0;
    for (size_t l = 0; l < c->n_layers; l++) {
        double ratio = (double)c->ratio[l], d = (double)c->head_dim, di = (double)c->index_head_dim;
        *constant += (double)c->window * d;
        if (c->ratio[l] == 0)
            continue;
        bool is_csa = c->ratio[l] == V4_CSA_RATIO;
        *per_token += (d + (is_csa ? di : 0)) / ratio;
        *constant += ratio * 2 * (is_csa ? 3 * (d + di) : d);
    }
    *per_token *= sizeof(float);
    *constant *= sizeof(float);
}

static void write_text(struct strbuf *s, const struct fathom_model *m)
{
    const struct v4_config *c = &m->v4->cfg;
    size_t n_csa = 0, n_hca = 0, bytes = 0;
    double per_token, constant;
    char shape[96];
    for (size_t l = 0; l < c->n_layers; l++) {
        n_csa += c->ratio[l] == V4_CSA_RATIO;
        n_hca += c->ratio[l] != 0 && c->ratio[l] != V4_CSA_RATIO;
    }
    for (size_t i = 0; i < weights_count(m->weights); i++)
        bytes += weights_at(m->weights, i)->bytes;
    state_bytes(c, &per_token, &constant);
    strbuf_addf(s, "DeepSeek-V4\n");
    strbuf_addf(s, "  layers        %zu: %zu sliding, %zu CSA, %zu HCA; %zu wide, %zu streams\n", c->n_layers,
                c->n_layers - n_csa - n_hca, n_csa, n_hca, c->dim, c->n_streams);
    strbuf_addf(s, "  attention     %zu heads of %zu, window %zu; the indexer keeps %zu entries\n", c->n_heads,
                c->head_dim, c->window, c->index_top_k);
    strbuf_addf(s, "  experts       %zu of %zu a token, %zu wide; %zu layers choose by token\n", c->top_k, c->n_experts,
                c->expert_dim, c->n_hash_layers);
    strbuf_addf(s, "  vocabulary    %zu tokens, context %zu\n", c->vocab_size, c->n_ctx);
    strbuf_addf(s, "memory\n  weights       %.1f MiB, mapped\n", (double)bytes / 0x1p20);
    strbuf_addf(s, "  state         %.0f bytes a token and %.1f MiB, %.1f MiB for a full context\n", per_token,
                constant / 0x1p20, (constant + per_token * (double)c->n_ctx) / 0x1p20);
    strbuf_addf(s, "tensors (%zu)\n", weights_count(m->weights));
    for (size_t i = 0; i < weights_count(m->weights); i++) {
        const struct weight *w = weights_at(m->weights, i);
        strbuf_addf(s, "  %-8s %-22s %s\n", w->file_dtype, tensor_shape_text(&w->tensor, shape), w->name);
    }
}

static void write_json(struct strbuf *s, const struct fathom_model *m)
{
    const struct v4_config *c = &m->v4->cfg;
    size_t bytes = 0;
    double per_token, constant;
    char shape[96];
    for (size_t i = 0; i < weights_count(m->weights); i++)
        bytes += weights_at(m->weights, i)->bytes;
    state_bytes(c, &per_token, &constant);
    strbuf_addf(s,
                "{\"kind\":\"DeepSeek-V4\",\"weight_bytes\":%zu,\"state_bytes_per_token\":%.0f,"
                "\"state_bytes_constant\":%.0f,\"n_ctx\":%zu,\"vocab_size\":%zu,\"tensors\":[",
                bytes, per_token, constant, c->n_ctx, c->vocab_size);
    for (size_t i = 0; i < weights_count(m->weights); i++) {
        const struct weight *w = weights_at(m->weights, i);
        strbuf_addf(s, "%s{\"name\":", i ? "," : "");
        strbuf_add_json(s, w->name, strlen(w->name));
        strbuf_addf(s, ",\"dtype\":");
        strbuf_add_json(s, w->file_dtype, strlen(w->file_dtype));
        strbuf_addf(s, ",\"shape\":%s}", tensor_shape_text(&w->tensor, shape));
    }
    strbuf_addf(s, "]}\n");
}

void model_write_v4(struct strbuf *s, const struct fathom_model *m, bool json)
{
    if (json)
        write_json(s, m);
    else
        write_text(s, m);
}
