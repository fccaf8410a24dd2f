#include "engine/context.h"

#include <stdlib.h>

#include "document/document.h"

/* In which activations and the cache are stored. */
static enum dtype context_dtype(const struct fathom_context *ctx)
{
    return ctx->device && ctx->act == FATHOM_BF16 ? DTYPE_BF16 : DTYPE_F32;
}

/* The device, its scratch, and the model in its memory. */
static enum fathom_status place(struct fathom_context *ctx, const struct fathom_context_options *o,
                                struct fathom_err *err)
{
    enum fathom_status status;

    ctx->network = ctx->model;
    arena_init(&ctx->arena, SIZE_MAX);
    if ((status = device_open(o->device, o->exact, &ctx->device, ctx->why_no_device, err)) || !ctx->device)
        return status;
    if ((status = ctx->device->begin(ctx->device, err)) ||
        (status = ctx->device->arena(ctx->device, &ctx->arena, SIZE_MAX, err)) ||
        (status = placement_create(&ctx->placement, ctx->model, ctx->device, ctx->act, err)))
        return status;
    ctx->network = ctx->placement.network;
    return FATHOM_OK;
}

static float *alloc_logits(struct fathom_context *ctx, size_t n)
{
    return ctx->device ? ctx->device->host_alloc(ctx->device, n * sizeof(float)) : malloc(n * sizeof(float));
}

enum fathom_status fathom_context_create(const struct fathom_model *model, const struct fathom_context_options *options,
                                         struct fathom_context **out, struct fathom_err *err)
{
    const struct decoder_config *c = &model->config.decoder;
    struct fathom_context_options o = options ? *options : (struct fathom_context_options){0};
    int n_threads = o.n_threads > 0 ? o.n_threads : pool_default_threads();
    struct fathom_context *ctx = calloc(1, sizeof *ctx);
    enum fathom_status status;

    *out = NULL;
    if (!ctx)
        return fail_nomem(err, sizeof *ctx, "the context");
    if (model->v4) {
        free(ctx);
        return fail(err, FATHOM_EUNSUPPORTED,
                    "DeepSeek-V4 reads no pages, it writes text: fathom chat, fathom generate");
    }
    ctx->model = model;
    ctx->act = o.dtype;
    ctx->kernels = kernels_select(o.isa);
    if (!ctx->kernels)
        status = fail(err, FATHOM_EINVAL, "'%s' is not an instruction set: ref, avx2 or avx512", o.isa);
    else if (!(status = place(ctx, &o, err)) && !(ctx->logits = alloc_logits(ctx, c->vocab_size)))
        status = fail_nomem(err, c->vocab_size * sizeof *ctx->logits, "the logits");
    else if (!status && !(status = kv_cache_create(&ctx->kv, c->n_layers, c->n_kv_heads, c->head_dim,
                                                   o.n_ctx ? o.n_ctx : c->n_ctx, context_dtype(ctx), ctx->device, err)))
        status = pool_create(n_threads, &ctx->pool, err);
    if (status) {
        fathom_context_destroy(ctx);
        return status;
    }
    *out = ctx;
    return FATHOM_OK;
}

void fathom_context_destroy(struct fathom_context *ctx)
{
    if (!ctx)
        return;
    pool_destroy(ctx->pool);
    kv_cache_release(&ctx->kv);
    placement_release(&ctx->placement);
    arena_release(&ctx->arena);
    decoder_destroy(ctx->decoder);
    if (ctx->device) {
        ctx->device->host_release(ctx->device, ctx->logits);
        ctx->device->close(ctx->device);
    } else {
        free(ctx->logits);
    }
    free(ctx);
}

const char *fathom_context_device(const struct fathom_context *ctx, const char **why)
{
    if (why)
        *why = ctx->why_no_device[0] ? ctx->why_no_device : NULL;
    return ctx->device ? ctx->device->name : "cpu";
}

struct run context_run(struct fathom_context *ctx)
{
    struct run run = {.kernels = ctx->device ? ctx->device->kernels : ctx->kernels,
                      .pool = ctx->pool,
                      .arena = &ctx->arena,
                      .act = ctx->act,
                      .dtype = context_dtype(ctx),
                      .device = ctx->device,
                      .trace = ctx->trace,
                      .trace_ctx = ctx->trace_ctx};
    if (ctx->device)
        ctx->device->begin(ctx->device, &run.err);
    return run;
}

enum fathom_status context_check_ids(const struct fathom_context *ctx, const int32_t *ids, size_t n,
                                     struct fathom_err *err)
{
    size_t vocab_size = ctx->model->config.decoder.vocab_size;
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= vocab_size)
            return fail(err, FATHOM_EINVAL, "token id %d is outside the vocabulary of %zu", (int)ids[i], vocab_size);
    return FATHOM_OK;
}

void context_embed(struct run *run, const struct decoder *d, struct tensor *x, const int32_t *ids,
                   const struct context_image *image, size_t *image_row)
{
    size_t n = x->shape[0];
    struct arena_mark mark = arena_save(run->arena);
    int32_t *own = run_scratch(run, n, sizeof *own);
    upload_ids(run, own, ids, n);
    embed(run, x, &d->embed_tokens, own);
    arena_restore(run->arena, mark);
    if (!image)
        return;
    for (size_t i = 0; i < n; i++) {
        size_t m = 0, left = image->block->shape[0] - *image_row;
        while (i + m < n && m < left && ids[i + m] == image->image_id)
            m++;
        if (!m)
            continue;
        struct tensor to = tensor_rows(x, i, m), from = tensor_rows(image->block, *image_row, m);
        copy(run, &to, &from);
        *image_row += m;
        i += m - 1;
    }
}

/* Asks between operations too: a chunk of a large model takes seconds. */
struct waiting {
    bool (*keep_going)(void *user, size_t done, size_t total);
    void *user;
    size_t done, total;
};

static bool still_waiting(void *ctx)
{
    const struct waiting *w = ctx;
    return w->keep_going(w->user, w->done, w->total);
}

enum fathom_status context_append(struct fathom_context *ctx, const int32_t *ids, size_t n,
                                  const struct context_image *image, size_t chunk,
                                  bool (*keep_going)(void *user, size_t done, size_t total), void *user,
                                  struct fathom_err *err)
{
    const struct decoder *d = ctx->network->decoder;
    struct run run = context_run(ctx);
    struct waiting waiting = {keep_going, user, 0, n};
    size_t image_row = 0;

    run.keep_going = keep_going ? still_waiting : NULL;
    run.keep_going_ctx = &waiting;

    if (n > ctx->kv.capacity - ctx->kv.n_tok)
        return fail(err, FATHOM_ELIMIT, "%zu tokens, but the context of %zu has room for %zu", n, ctx->kv.capacity,
                    ctx->kv.capacity - ctx->kv.n_tok);
    if (context_check_ids(ctx, ids, n, err))
        return FATHOM_EINVAL;
    chunk = chunk ? chunk : run.kernels->max_rows / 2;
    for (size_t first = 0; first < n && run_ok(&run); first += chunk) {
        size_t m = n - first < chunk ? n - first : chunk;
        struct arena_mark mark = arena_save(run.arena);
        struct tensor x = run_alloc(&run, m, d->cfg.dim);
        context_embed(&run, d, &x, ids + first, image, &image_row);
        decoder_forward(&run, d, &ctx->kv, &x);
        if (first + m == n) {
            struct tensor last = tensor_rows(&x, m - 1, 1);
            struct tensor logits = run_alloc_f32(&run, 1, d->cfg.vocab_size);
            decoder_logits(&run, d, &logits, &last);
            download(&run, ctx->logits, &logits);
        }
        arena_restore(run.arena, mark);
        waiting.done = first + m;
        if (keep_going && run_ok(&run) && !still_waiting(&waiting))
            run_fail(&run, FATHOM_ECANCELLED, "cancelled");
    }
    if (!run_ok(&run)) {
        if (err)
            *err = run.err;
        return run.err.status;
    }
    return FATHOM_OK;
}

void context_reset(struct fathom_context *ctx) { kv_cache_rewind(&ctx->kv, 0); }
