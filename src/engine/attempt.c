#include "engine/attempt.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/cost.h"
#include "engine/generate.h"
#include "text/prompt.h"

static bool on_prefill(void *reader, size_t done, size_t total) { return reader_stage(reader, "prefill", done, total); }

enum fathom_status question_ask(struct question *out, const struct reader *reader, const struct sight *sight,
                                const char *prompt, struct fathom_err *err)
{
    struct fathom_context *ctx = reader->ctx;
    const struct decoder_config *decoder = &ctx->model->config.decoder;
    struct context_image image = {&sight->block, ctx->model->image_id};
    size_t bytes = decoder->vocab_size * sizeof *out->logits;
    struct tokens ids = {0};
    enum fathom_status status;

    double start = clock_ms();
    *out = (struct question){.logits = malloc(bytes)};
    if (!out->logits)
        return fail_nomem(err, bytes, "the logits");
    context_reset(ctx);
    status = prompt_build(ctx->model->tokenizer, prompt, decoder->bos_id, 1, &sight->block.shape[0], &ids, err);
    if (!status)
        status = context_append(ctx, ids.ids, ids.n, &image, 0, on_prefill, (void *)reader, err);
    if (!status)
        memcpy(out->logits, ctx->logits, bytes);
    out->n_tok = ids.n;
    out->prefill_ms = clock_ms() - start;
    out->prefill_flop = decoder_flop(decoder, 0, ids.n);
    tokens_free(&ids);
    return status;
}

void question_release(struct question *q)
{
    free(q->logits);
    *q = (struct question){0};
}

/* The generation in hand. */
struct decoding {
    const struct reader *reader;
    size_t max_tokens;
};

static bool on_token(void *user, size_t n_tok)
{
    const struct decoding *d = user;
    return reader_stage(d->reader, "decode", n_tok, d->max_tokens);
}

static bool on_text(void *user, const char *text, size_t n)
{
    const struct decoding *d = user;
    const struct fathom_callbacks *c = d->reader->callbacks;
    return !c || !c->on_text || c->on_text(c->user, text, n);
}

static enum fathom_page_status page_status(enum stop_reason stop)
{
    switch (stop) {
    case STOP_EOS: return FATHOM_PAGE_OK;
    case STOP_LIMIT: return FATHOM_PAGE_TRUNCATED;
    case STOP_LOOP: return FATHOM_PAGE_LOOPED;
    }
    return FATHOM_PAGE_FAILED;
}

enum fathom_status question_answer(struct outcome *out, const struct reader *reader, const struct sight *sight,
                                   const struct question *q, int ngram, int ngram_window, bool stream,
                                   struct fathom_err *err)
{
    struct fathom_context *ctx = reader->ctx;
    const struct fathom_model *model = ctx->model;
    const struct fathom_read_options *o = reader->options;
    size_t room = ctx->kv.capacity - q->n_tok;
    bool limited = o->max_tokens > 0 && (size_t)o->max_tokens < room;
    struct decoding decoding = {reader, limited ? (size_t)o->max_tokens : room};
    const struct generate_options options = {
        .max_tokens = decoding.max_tokens,
        .guard = {ngram, ngram_window, {model->cell_ids[0], model->cell_ids[1]}},
        .temperature = o->temperature,
        .top_p = o->top_p,
        .seed = o->seed,
        .on_text = stream ? on_text : NULL,
        .on_token = on_token,
        .user = &decoding,
    };
    struct generation g;

    double start = clock_ms();
    kv_cache_rewind(&ctx->kv, q->n_tok);
    memcpy(ctx->logits, q->logits, model->config.decoder.vocab_size * sizeof *q->logits);
    enum fathom_status status = generate(ctx, &options, &g, err);
    size_t steps = ctx->kv.n_tok - q->n_tok, middle = q->n_tok + steps / 2;
    *out = (struct outcome){
        .text = g.text,
        .status = status ? FATHOM_PAGE_TRUNCATED : page_status(g.stop),
        .context_full = !status && g.stop == STOP_LIMIT && !limited,
        .stats = {.vision_ms = sight->vision_ms,
                  .prefill_ms = q->prefill_ms,
                  .decode_ms = clock_ms() - start,
                  .n_views = sight->n_views,
                  .n_prompt_tokens = q->n_tok,
                  .n_output_tokens = g.n_tok,
                  .vision_flop = sight->vision_flop,
                  .prefill_flop = q->prefill_flop,
                  .decode_bytes = (double)steps * decoder_step_bytes(model->decoder, &ctx->kv, middle),
                  .vision_peak_bytes = sight->vision_peak_bytes,
                  .kv_bytes = kv_cache_bytes(&ctx->kv, ctx->kv.n_tok)},
    };
    return status;
}

void outcome_release(struct outcome *o) { strbuf_free(&o->text); }
