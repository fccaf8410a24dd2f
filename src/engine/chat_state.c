#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/chat.h"

#define CHUNK 512
#define USUAL_CONTEXT ((size_t)65536)
#define USUAL_SHARE 4 /* of the machine's memory, a context that nobody chose takes no more than one part of these */

static double machine_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (double)pages * (double)size : 1e18;
}

static enum fathom_status create_state(struct v4_state *s, const struct v4_config *c, size_t n_ctx,
                                       struct fathom_err *err)
{
    size_t wanted = n_ctx ? n_ctx : c->n_ctx < USUAL_CONTEXT ? c->n_ctx : USUAL_CONTEXT;
    double machine = machine_bytes();
    if (wanted > c->n_ctx)
        return fail(err, FATHOM_ELIMIT, "a context of %zu tokens is longer than the model's %zu", wanted, c->n_ctx);
    for (;;) {
        enum fathom_status status = v4_state_create(s, c, wanted, err);
        if (status)
            return status;
        double bytes = (double)s->memory_bytes;
        if (bytes <= (n_ctx ? machine : machine / USUAL_SHARE) || (!n_ctx && wanted <= c->window))
            return FATHOM_OK;
        v4_state_release(s);
        if (n_ctx)
            return fail(err, FATHOM_ENOMEM, "a context of %zu tokens needs %.1f GiB of memory, this machine has %.1f",
                        wanted, bytes / 0x1p30, machine / 0x1p30);
        wanted /= 2;
    }
}

enum fathom_status chat_state_create(struct chat_state *c, const struct v4 *model,
                                     const struct fathom_context_options *options, struct fathom_err *err)
{
    struct fathom_context_options o = options ? *options : (struct fathom_context_options){0};
    enum fathom_status status;
    memset(c, 0, sizeof *c);
    c->model = model;
    arena_init(&c->arena, SIZE_MAX);
    c->kernels = kernels_select(o.isa);
    if (!c->kernels)
        return fail(err, FATHOM_EINVAL, "'%s' is not an instruction set: ref, avx2 or avx512", o.isa);
    if (o.device && strcmp(o.device, "cpu") != 0 && strcmp(o.device, "auto") != 0)
        return fail(err, FATHOM_EUNSUPPORTED, "DeepSeek-V4 runs on the processor only");
    if (o.dtype != FATHOM_F32)
        return fail(err, FATHOM_EUNSUPPORTED, "DeepSeek-V4 has float32 activations only");
    c->logits = malloc(model->cfg.vocab_size * sizeof *c->logits);
    if (!c->logits)
        return fail_nomem(err, model->cfg.vocab_size * sizeof *c->logits, "the logits");
    status = create_state(&c->v4, &model->cfg, o.n_ctx, err);
    if (!status)
        status = pool_create(o.n_threads > 0 ? o.n_threads : pool_default_threads(), &c->pool, err);
    return status;
}

void chat_state_release(struct chat_state *c)
{
    pool_destroy(c->pool);
    arena_release(&c->arena);
    v4_state_release(&c->v4);
    v4_snapshot_release(&c->saved);
    tokens_free(&c->fed);
    free(c->logits);
    memset(c, 0, sizeof *c);
}

void chat_state_reset(struct chat_state *c)
{
    v4_state_reset(&c->v4);
    v4_snapshot_release(&c->saved);
    c->fed.n = 0;
}

/* Back to what was saved, or to nothing. */
static enum fathom_status go_back(struct chat_state *c, struct fathom_err *err)
{
    size_t n = c->saved.n_tok;
    if (!c->saved.data) {
        chat_state_reset(c);
        return FATHOM_OK;
    }
    v4_state_reset(&c->v4);
    enum fathom_status status = v4_state_restore(&c->v4, &c->saved, err);
    c->fed.n = n;
    if (status)
        chat_state_reset(c);
    return status;
}

struct waiting {
    const struct fathom_chat_callbacks *callbacks;
    size_t done, total;
};

static bool still_waiting(void *ctx)
{
    const struct waiting *w = ctx;
    return !w->callbacks || !w->callbacks->on_prefill ||
           w->callbacks->on_prefill(w->callbacks->user, w->done, w->total);
}

static enum fathom_status append(struct chat_state *c, const int32_t *ids, size_t n, struct waiting *waiting,
                                 struct fathom_err *err)
{
    const struct v4_config *cfg = &c->model->cfg;
    struct run run = {.kernels = c->kernels, .pool = c->pool, .arena = &c->arena};
    run.keep_going = waiting ? still_waiting : NULL;
    run.keep_going_ctx = waiting;
    for (size_t first = 0, m; first < n && run_ok(&run); first += m) {
        m = n - first < CHUNK ? n - first : CHUNK;
        struct arena_mark mark = arena_save(run.arena);
        struct tensor x = run_alloc(&run, m, cfg->n_streams * cfg->dim);
        v4_embed(&run, c->model, &x, ids + first);
        v4_forward(&run, c->model, &c->v4, &x, ids + first);
        if (first + m == n) {
            struct tensor last = tensor_rows(&x, m - 1, 1),
                          logits = tensor_2d(DTYPE_F32, c->logits, 1, cfg->vocab_size);
            v4_logits(&run, c->model, &logits, &last);
        }
        arena_restore(run.arena, mark);
        for (size_t i = 0; i < m && run_ok(&run); i++)
            if (tokens_push(&c->fed, ids[first + i], &run.err))
                break;
        if (waiting)
            waiting->done += m;
    }
    if (run_ok(&run))
        return FATHOM_OK;
    if (err)
        *err = run.err;
    go_back(c, NULL); /* the state of a pass that was left is of no use */
    return run.err.status;
}

enum fathom_status chat_state_prompt(struct chat_state *c, const struct tokens *prompt, bool keep,
                                     const struct fathom_chat_callbacks *callbacks, size_t *n_new,
                                     struct fathom_err *err)
{
    size_t common = 0, n = prompt->n;
    enum fathom_status status = FATHOM_OK;
    *n_new = 0;
    if (n > c->v4.capacity)
        return fail(err, FATHOM_ELIMIT, "the prompt has %zu tokens, the context room for %zu", n, c->v4.capacity);
    while (common < c->fed.n && common < n && c->fed.ids[common] == prompt->ids[common])
        common++;
    if (common < c->fed.n || common == n) {
        if (c->saved.n_tok > common || c->saved.n_tok >= n)
            v4_snapshot_release(&c->saved);
        status = go_back(c, err);
    }
    *n_new = n - c->fed.n;
    struct waiting waiting = {callbacks, c->fed.n, n};
    if (!status && c->fed.n < n - 1)
        status = append(c, prompt->ids + c->fed.n, n - 1 - c->fed.n, &waiting, err);
    if (!status) {
        v4_snapshot_release(&c->saved);
        if (keep)
            status = v4_state_save(&c->v4, &c->saved, err);
    }
    return status ? status : append(c, prompt->ids + n - 1, 1, &waiting, err);
}

enum fathom_status chat_state_step(struct chat_state *c, int32_t id, struct fathom_err *err)
{
    return append(c, &id, 1, NULL, err);
}
