#include "engine/sight.h"

#include "base/clock.h"
#include "engine/page_views.h"
#include "engine/vision.h"
#include "text/prompt.h"

/* Where the work is, for callers who want to know or to stop. */
struct progress {
    const struct reader *reader;
    size_t done, total; /* views */
    bool stopped;       /* who said so is not asked again */
};

static bool keep_going(void *user)
{
    struct progress *p = user;
    p->stopped = p->stopped || !reader_stage(p->reader, "vision", p->done, p->total);
    return !p->stopped;
}

static bool on_view(void *user, size_t done, size_t total)
{
    struct progress *p = user;
    p->done = done;
    p->total = total;
    return keep_going(p);
}

/* Whether prompt and picture leave room for an answer. */
static enum fathom_status check_room(const struct reader *reader, const struct picture *picture, const char *prompt,
                                     struct fathom_err *err)
{
    const struct fathom_model *model = reader->ctx->model;
    size_t n_vision = vision_tokens(model, picture), capacity = reader->ctx->kv.capacity;
    struct tokens ids = {0};
    enum fathom_status status =
        prompt_build(model->tokenizer, prompt, model->config.decoder.bos_id, 1, &n_vision, &ids, err);
    size_t n = ids.n;
    tokens_free(&ids);
    if (status || n < capacity)
        return status;
    struct picture whole = *picture;
    whole.n_local = 0;
    if (picture->n_local)
        return fail(err, FATHOM_ELIMIT,
                    "prompt and picture are %zu tokens, which leaves no room in the context of %zu; %zu are the "
                    "picture's, without tiles they would be %zu",
                    n, capacity, n_vision, vision_tokens(model, &whole));
    return fail(err, FATHOM_ELIMIT,
                "prompt and picture are %zu tokens, which leaves no room in the context of %zu; %zu are the picture's",
                n, capacity, n_vision);
}

enum fathom_status sight_take(struct sight *out, const struct reader *reader, const uint8_t *rgb, int width, int height,
                              const struct view_config *config, const char *prompt, struct fathom_err *err)
{
    struct fathom_context *ctx = reader->ctx;
    struct run run = context_run(ctx);
    struct views views = {0};
    enum fathom_status status;

    double start = clock_ms();
    if ((status = views_make(&views, rgb, width, height, config, err)))
        return status;
    struct picture picture = views_picture(&views);
    struct progress progress = {.reader = reader, .total = picture.n_local + 1};
    run.keep_going = keep_going;
    run.keep_going_ctx = &progress;
    if (!(status = check_room(reader, &picture, prompt, err))) {
        out->block = run_alloc(&run, vision_tokens(ctx->model, &picture), ctx->model->config.decoder.dim);
        vision_forward(&run, ctx->network, &picture, &out->block, on_view, &progress);
        if (!run_ok(&run)) {
            *err = run.err;
            status = err->status;
        }
    }
    views_free(&views);
    out->tiled = picture.n_local > 0;
    out->n_views = picture.n_local + 1;
    out->vision_ms = clock_ms() - start;
    out->vision_flop = vision_flop(ctx->model, &picture);
    out->vision_peak_bytes = ctx->arena.peak_bytes;
    return status;
}
