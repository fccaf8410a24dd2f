#include "engine/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum fathom_status model_alloc(struct fathom_model **out, struct fathom_err *err)
{
    struct fathom_model *m = calloc(1, sizeof *m);
    if (!m)
        return fail_nomem(err, sizeof *m, "the model");
    m->image_id = m->cell_ids[0] = m->cell_ids[1] = -1;
    *out = m;
    return FATHOM_OK;
}

enum fathom_status model_from_weights(struct fathom_model **out, struct weights *w, const struct model_config *config,
                                      struct fathom_err *err)
{
    struct fathom_model *m = NULL;
    enum fathom_status status = model_alloc(&m, err);
    if (status) {
        weights_close(w);
        return status;
    }
    m->weights = w;
    m->config = *config;
    m->decoder = config->kind == MODEL_OCR1 ? &m->ocr1.decoder : &m->ocr2.decoder;
    status = config->kind == MODEL_OCR1 ? ocr1_bind(&m->ocr1, config, w, err) : ocr2_bind(&m->ocr2, config, w, err);
    if (status) {
        fathom_model_close(m);
        return status;
    }
    *out = m;
    return FATHOM_OK;
}

enum fathom_status model_open_network(struct fathom_model **out, const char *dir, struct fathom_err *err)
{
    struct weights *w = NULL;
    struct model_config config;
    enum fathom_status status;

    if ((status = weights_open(&w, dir, err)))
        return status;
    if ((status = config_load(&config, dir, w, err))) {
        weights_close(w);
        return status;
    }
    if ((status = model_from_weights(out, w, &config, err)))
        return fail_at(err, "'%s': ", dir);
    return FATHOM_OK;
}

static enum fathom_status open_tokenizer(struct fathom_model *m, const char *dir, struct fathom_err *err)
{
    char path[4096];
    enum fathom_status status;

    if (snprintf(path, sizeof path, "%s/tokenizer.json", dir) >= (int)sizeof path)
        return fail(err, FATHOM_EINVAL, "the path of the model folder is too long");
    if ((status = tokenizer_open(&m->tokenizer, path, err)))
        return status;
    m->image_id = tokenizer_find(m->tokenizer, "<image>");
    m->cell_ids[0] = tokenizer_find(m->tokenizer, "<td>");
    m->cell_ids[1] = tokenizer_find(m->tokenizer, "</td>");
    if (m->image_id < 0)
        return fail(err, FATHOM_EFORMAT, "'%s' has no token '<image>'", path);
    if (tokenizer_size(m->tokenizer) > m->config.decoder.vocab_size)
        return fail(err, FATHOM_EFORMAT, "'%s' has %zu tokens, the model only %zu", path, tokenizer_size(m->tokenizer),
                    m->config.decoder.vocab_size);
    return FATHOM_OK;
}

enum fathom_status fathom_model_open(const char *dir, struct fathom_model **out, struct fathom_err *err)
{
    struct fathom_model *m = NULL;
    enum fathom_status status;

    *out = NULL;
    if (model_is_v4(dir))
        return model_open_v4(out, dir, err);
    if ((status = model_open_network(&m, dir, err)))
        return status;
    if ((status = open_tokenizer(m, dir, err))) {
        fathom_model_close(m);
        return status;
    }
    *out = m;
    return FATHOM_OK;
}

void fathom_model_close(struct fathom_model *m)
{
    if (!m)
        return;
    if (m->v4)
        v4_release(m->v4);
    else if (m->config.kind == MODEL_OCR1)
        ocr1_release(&m->ocr1);
    else
        ocr2_release(&m->ocr2);
    free(m->v4);
    tokenizer_close(m->tokenizer);
    weights_close(m->weights);
    free(m);
}

enum fathom_status fathom_count_tokens(const struct fathom_model *model, const char *text, size_t n_bytes,
                                       bool parse_special, size_t *out, struct fathom_err *err)
{
    struct tokens tokens = {0};
    enum fathom_status status = tokenizer_encode(model->tokenizer, text, n_bytes, parse_special, &tokens, err);
    *out = tokens.n;
    tokens_free(&tokens);
    return status;
}
