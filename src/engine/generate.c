#include "engine/generate.h"

#include <string.h>

#include "engine/loop_detector.h"
#include "engine/sampler.h"

/* How often the output is looked at for loops, in tokens. */
#define LOOP_INTERVAL 32

/* Adds a token's text to the page and hands whole characters on. piece NULL: the end, flush. */
static bool emit(struct detokenizer *d, const char *piece, size_t n, const struct generate_options *o,
                 struct strbuf *text)
{
    char buffer[256];
    do {
        const size_t most = (sizeof buffer - 3) / 3; /* a broken byte becomes three */
        size_t part = n < most ? n : most;
        size_t len = detokenizer_push(d, piece, part, buffer);
        strbuf_add(text, buffer, len);
        if (len && o->on_text && !o->on_text(o->user, buffer, len))
            return false;
        n -= part;
        if (piece)
            piece += part;
    } while (n);
    return true;
}

static enum fathom_status loop(struct fathom_context *ctx, const struct generate_options *o, struct sampler *sampler,
                               struct loop_detector *detector, struct tokens *ids, struct generation *out,
                               struct fathom_err *err)
{
    const struct fathom_model *model = ctx->model;
    size_t n_vocab = tokenizer_size(model->tokenizer);
    struct detokenizer detokenizer = {0};
    enum fathom_status status;

    for (out->stop = STOP_LIMIT; ids->n < o->max_tokens;) {
        size_t len, kept;
        int32_t id;
        ngram_guard_apply(&o->guard, ids->ids, ids->n, ctx->logits, n_vocab);
        if ((id = sampler_next(sampler, ctx->logits, n_vocab)) < 0)
            return fail(err, FATHOM_ENUMERIC, "the model gave logits that are not finite");
        if (id == model->config.decoder.eos_id) {
            out->stop = STOP_EOS;
            break;
        }
        if ((status = tokens_push(ids, id, err)))
            return status;
        out->n_tok = ids->n;
        if (o->on_token && !o->on_token(o->user, ids->n))
            return fail(err, FATHOM_ECANCELLED, "cancelled");
        const char *piece = tokenizer_piece(model->tokenizer, id, &len);
        if (len && !emit(&detokenizer, piece, len, o, &out->text))
            return fail(err, FATHOM_ECANCELLED, "cancelled");
        if (ids->n % LOOP_INTERVAL == 0 && (kept = loop_detect(detector, strbuf_text(&out->text), out->text.n))) {
            strbuf_cut(&out->text, kept);
            out->stop = STOP_LOOP;
            return FATHOM_OK;
        }
        if (ctx->kv.n_tok == ctx->kv.capacity || ids->n == o->max_tokens)
            break;
        if ((status = context_append(ctx, &id, 1, NULL, 0, NULL, NULL, err)))
            return status;
    }
    if (!emit(&detokenizer, NULL, 0, o, &out->text))
        return fail(err, FATHOM_ECANCELLED, "cancelled");
    return FATHOM_OK;
}

enum fathom_status generate(struct fathom_context *ctx, const struct generate_options *options, struct generation *out,
                            struct fathom_err *err)
{
    struct sampler sampler;
    struct loop_detector detector = {0};
    struct tokens ids = {0};
    enum fathom_status status;

    memset(out, 0, sizeof *out);
    if ((status = sampler_init(&sampler, options->temperature, options->top_p, options->seed,
                               ctx->model->config.decoder.vocab_size, err)))
        return status;
    status = loop(ctx, options, &sampler, &detector, &ids, out, err);
    if (!status && (out->text.failed || detector.failed))
        status = fail_nomem(err, out->text.n, "the page's text");
    loop_detector_release(&detector);
    tokens_free(&ids);
    sampler_release(&sampler);
    return status;
}

void generation_release(struct generation *g) { strbuf_free(&g->text); }
