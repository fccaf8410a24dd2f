#include "engine/attempt.h"

#include "base/clock.h"
#include "engine/cost.h"
#include "engine/page_views.h"
#include "engine/vision.h"
#include "text/prompt.h"

static const char default_prompt[] = "<image>\n<|grounding|>Convert the document to markdown.";

/* The attempt in hand. */
struct job {
    const struct reader *reader;
    struct fathom_stats *stats;
    size_t max_tokens; /* that the page may have */
};

static bool stage(const struct job *job, const char *name, size_t done, size_t total)
{
    const struct fathom_callbacks *c = job->reader->callbacks;
    return !c || !c->on_stage || c->on_stage(c->user, name, done, total);
}

static bool on_view(void *job, size_t done, size_t total) { return stage(job, "vision", done, total); }
static bool on_prefill(void *job, size_t done, size_t total) { return stage(job, "prefill", done, total); }

static bool on_token(void *user, size_t n_tok)
{
    const struct job *job = user;
    return stage(job, "decode", n_tok, job->max_tokens);
}

static bool on_text(void *user, const char *text, size_t n)
{
    const struct job *job = user;
    const struct fathom_callbacks *c = job->reader->callbacks;
    return !c || !c->on_text || c->on_text(c->user, text, n);
}

/* The picture's embeddings, in the arena. */
static enum fathom_status see(struct job *job, const uint8_t *rgb, int width, int height, struct tensor *block,
                              struct fathom_err *err)
{
    struct fathom_context *ctx = job->reader->ctx;
    struct run run = context_run(ctx);
    struct views views = {0};
    enum fathom_status status;

    double start = clock_ms();
    if ((status = views_make(&views, rgb, width, height, &ctx->model->config.view, err)))
        return status;
    if (!stage(job, "vision", 0, views.n_local + 1)) {
        views_free(&views);
        return fail(err, FATHOM_ECANCELLED, "cancelled");
    }
    struct picture picture = views_picture(&views);
    *block = run_alloc(&run, vision_tokens(ctx->model, &picture), ctx->model->config.decoder.dim);
    vision_forward(&run, ctx->model, &picture, block, on_view, job);
    views_free(&views);
    if (!run_ok(&run)) {
        *err = run.err;
        return err->status;
    }
    job->stats->n_views = picture.n_local + 1;
    job->stats->vision_ms = clock_ms() - start;
    job->stats->vision_flop = vision_flop(ctx->model, &picture);
    job->stats->vision_peak_bytes = ctx->arena.peak_bytes;
    return FATHOM_OK;
}

static enum fathom_status prefill(struct job *job, const struct tensor *block, struct fathom_err *err)
{
    struct fathom_context *ctx = job->reader->ctx;
    const struct fathom_model *model = ctx->model;
    const char *prompt = job->reader->options->prompt ? job->reader->options->prompt : default_prompt;
    struct context_image image = {block, model->image_id};
    struct tokens ids = {0};
    enum fathom_status status;

    double start = clock_ms();
    context_reset(ctx);
    status = prompt_build(model->tokenizer, prompt, model->config.decoder.bos_id, 1, &block->shape[0], &ids, err);
    if (!status)
        status = context_append(ctx, ids.ids, ids.n, &image, 0, on_prefill, job, err);
    job->stats->n_prompt_tokens = ids.n;
    job->stats->prefill_ms = clock_ms() - start;
    job->stats->prefill_flop = decoder_flop(&model->config.decoder, 0, ids.n);
    tokens_free(&ids);
    return status;
}

static enum fathom_status decode(struct job *job, struct generation *out, struct fathom_err *err)
{
    struct fathom_context *ctx = job->reader->ctx;
    const struct fathom_read_options *o = job->reader->options;
    size_t n_prompt = ctx->kv.n_tok, room = ctx->kv.capacity - n_prompt;
    job->max_tokens = o->max_tokens > 0 && (size_t)o->max_tokens < room ? (size_t)o->max_tokens : room;
    struct generate_options options = {
        .max_tokens = job->max_tokens,
        .guard = {o->ngram, o->ngram_window, {ctx->model->cell_ids[0], ctx->model->cell_ids[1]}},
        .temperature = o->temperature,
        .top_p = o->top_p,
        .seed = o->seed,
        .on_text = on_text,
        .on_token = on_token,
        .user = job,
    };

    double start = clock_ms();
    enum fathom_status status = generate(ctx, &options, out, err);
    job->stats->decode_ms = clock_ms() - start;
    job->stats->n_output_tokens = out->n_tok;
    size_t steps = ctx->kv.n_tok - n_prompt, middle = n_prompt + steps / 2;
    job->stats->decode_bytes = (double)steps * decoder_step_bytes(ctx->model->decoder, &ctx->kv, middle);
    job->stats->kv_bytes = kv_cache_bytes(&ctx->kv, ctx->kv.n_tok);
    return status;
}

enum fathom_status attempt_run(struct attempt *out, const struct reader *reader, const uint8_t *rgb, int width,
                               int height, struct fathom_err *err)
{
    struct fathom_context *ctx = reader->ctx;
    struct arena_mark mark = arena_save(&ctx->arena);
    struct job job = {.reader = reader, .stats = &out->stats};
    struct tensor block;
    enum fathom_status status;

    *out = (struct attempt){0};
    arena_reset_peak(&ctx->arena);
    if (!(status = see(&job, rgb, width, height, &block, err)) && !(status = prefill(&job, &block, err)))
        status = decode(&job, &out->generation, err);
    out->stats.arena_peak_bytes = ctx->arena.peak_bytes;
    arena_restore(&ctx->arena, mark);
    return status;
}

void attempt_release(struct attempt *a) { generation_release(&a->generation); }
