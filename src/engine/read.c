/* Reading a page: pixels -> views -> vision tokens, prompt -> prefill -> tokens -> text -> blocks. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "document/layout.h"
#include "engine/context.h"
#include "engine/cost.h"
#include "engine/generate.h"
#include "engine/page_views.h"
#include "engine/vision.h"
#include "text/prompt.h"

static const char default_prompt[] = "<image>\n<|grounding|>Convert the document to markdown.";

struct fathom_read_options fathom_read_defaults(void)
{
    return (struct fathom_read_options){.ngram = 20, .ngram_window = 90, .top_p = 1};
}

const char *fathom_page_status_name(enum fathom_page_status status)
{
    switch (status) {
    case FATHOM_PAGE_OK: return "ok";
    case FATHOM_PAGE_TRUNCATED: return "truncated";
    case FATHOM_PAGE_LOOPED: return "looped";
    case FATHOM_PAGE_RETRIED: return "retried";
    case FATHOM_PAGE_FAILED: return "failed";
    }
    return "unknown";
}

/* The job in hand: what every step needs. */
struct job {
    struct fathom_context *ctx;
    const struct fathom_read_options *options;
    const struct fathom_callbacks *callbacks; /* may be NULL */
    struct fathom_stats stats;
    size_t max_tokens; /* that the page may have */
};

static bool stage(const struct job *job, const char *name, size_t done, size_t total)
{
    const struct fathom_callbacks *c = job->callbacks;
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
    const struct fathom_callbacks *c = job->callbacks;
    return !c || !c->on_text || c->on_text(c->user, text, n);
}

/* The picture's embeddings, in the arena. */
static enum fathom_status see(struct job *job, const uint8_t *rgb, int width, int height, struct tensor *block,
                              struct fathom_err *err)
{
    struct fathom_context *ctx = job->ctx;
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
    job->stats.n_views = picture.n_local + 1;
    job->stats.vision_ms = clock_ms() - start;
    job->stats.vision_flop = vision_flop(ctx->model, &picture);
    job->stats.vision_peak_bytes = ctx->arena.peak_bytes;
    return FATHOM_OK;
}

static enum fathom_status prefill(struct job *job, const struct tensor *block, struct fathom_err *err)
{
    struct fathom_context *ctx = job->ctx;
    const struct fathom_model *model = ctx->model;
    const char *prompt = job->options->prompt ? job->options->prompt : default_prompt;
    struct context_image image = {block, model->image_id};
    struct tokens ids = {0};
    enum fathom_status status;

    double start = clock_ms();
    context_reset(ctx);
    status = prompt_build(model->tokenizer, prompt, model->config.decoder.bos_id, 1, &block->shape[0], &ids, err);
    if (!status)
        status = context_append(ctx, ids.ids, ids.n, &image, 0, on_prefill, job, err);
    job->stats.n_prompt_tokens = ids.n;
    job->stats.prefill_ms = clock_ms() - start;
    job->stats.prefill_flop = decoder_flop(&model->config.decoder, 0, ids.n);
    tokens_free(&ids);
    return status;
}

static enum fathom_status decode(struct job *job, struct generation *out, struct fathom_err *err)
{
    struct fathom_context *ctx = job->ctx;
    const struct fathom_read_options *o = job->options;
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
    job->stats.decode_ms = clock_ms() - start;
    job->stats.n_output_tokens = out->n_tok;
    size_t steps = ctx->kv.n_tok - n_prompt, middle = n_prompt + steps / 2;
    job->stats.decode_bytes = (double)steps * decoder_step_bytes(ctx->model->decoder, &ctx->kv, middle);
    job->stats.kv_bytes = kv_cache_bytes(&ctx->kv, ctx->kv.n_tok);
    return status;
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

/* Hands the finished page to on_page. */
static enum fathom_status deliver(const struct job *job, struct fathom_page *page, const struct generation *g,
                                  struct fathom_err *err)
{
    const struct fathom_callbacks *c = job->callbacks;
    struct layout layout = {0};
    char *markdown = NULL;
    enum fathom_status status;

    page->raw = strbuf_text(&g->text);
    page->stats = job->stats;
    if (!(status = layout_parse(&layout, page->raw, page->width, page->height, err)) &&
        !(status = layout_markdown(page->raw, &markdown, err))) {
        page->markdown = markdown;
        page->blocks = layout.blocks;
        page->n_blocks = layout.n_blocks;
        if (c && c->on_page && !c->on_page(c->user, page))
            status = fail(err, FATHOM_ECANCELLED, "cancelled");
    }
    free(markdown);
    layout_free(&layout);
    return status;
}

/* Why the numbers failed: a damaged weight is looked for and named. */
static void explain_not_finite(const struct fathom_model *model, struct fathom_err *err)
{
    const char *name;
    if (weights_find_nonfinite(model->weights, &name))
        fail(err, FATHOM_ENUMERIC, "the model's tensor '%s' holds values that are not finite", name);
}

static enum fathom_status read_page(struct job *job, struct fathom_page *page, const uint8_t *rgb,
                                    struct fathom_err *err)
{
    struct fathom_context *ctx = job->ctx;
    struct arena_mark mark = arena_save(&ctx->arena);
    struct generation generation = {0};
    struct tensor block;
    enum fathom_status status;

    arena_reset_peak(&ctx->arena);
    job->stats.mapped_bytes = weights_mapped_bytes(ctx->model->weights);
    if (!(status = see(job, rgb, page->width, page->height, &block, err)) && !(status = prefill(job, &block, err)))
        status = decode(job, &generation, err);
    job->stats.arena_peak_bytes = ctx->arena.peak_bytes;
    arena_restore(&ctx->arena, mark);
    if (status == FATHOM_ENUMERIC)
        explain_not_finite(ctx->model, err);
    if (status && status != FATHOM_ECANCELLED) {
        page->status = FATHOM_PAGE_FAILED;
        page->err = *err;
        strbuf_cut(&generation.text, 0);
        status = FATHOM_OK;
    } else {
        page->status = status ? FATHOM_PAGE_TRUNCATED : page_status(generation.stop);
    }
    /* A cancelled page is handed over too, so that its text so far is not lost. */
    enum fathom_status delivered = deliver(job, page, &generation, err);
    generation_release(&generation);
    return status ? fail(err, status, "cancelled") : delivered;
}

enum fathom_status fathom_read_pixels(struct fathom_context *ctx, const uint8_t *rgb, int width, int height,
                                      const struct fathom_read_options *options,
                                      const struct fathom_callbacks *callbacks, struct fathom_err *err)
{
    const struct fathom_read_options defaults = fathom_read_defaults();
    struct fathom_err ignored;
    struct job job = {.ctx = ctx, .options = options ? options : &defaults, .callbacks = callbacks};
    struct fathom_page page = {.number = 1, .width = width, .height = height};

    if (width <= 0 || height <= 0)
        return fail(err, FATHOM_EINVAL, "a picture of %d x %d pixels", width, height);
    return read_page(&job, &page, rgb, err ? err : &ignored);
}

enum fathom_status fathom_read_file(struct fathom_context *ctx, const char *path,
                                    const struct fathom_read_options *options, const struct fathom_callbacks *callbacks,
                                    struct fathom_err *err)
{
    const struct fathom_read_options defaults = fathom_read_defaults();
    struct fathom_err ignored;
    struct job job = {.ctx = ctx, .options = options ? options : &defaults, .callbacks = callbacks};
    struct image image = {0};
    enum fathom_status status;

    err = err ? err : &ignored;
    double start = clock_ms();
    if ((status = image_load(&image, path, job.options->alpha, &image_default_limits, err)))
        return status;
    job.stats.decode_image_ms = clock_ms() - start;
    struct fathom_page page = {.number = 1, .width = image.width, .height = image.height};
    status = read_page(&job, &page, image.rgb, err);
    image_free(&image);
    return status;
}
