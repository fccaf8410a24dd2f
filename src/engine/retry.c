#include "engine/retry.h"

#include <string.h>

#include "base/clock.h"
#include "document/halves.h"
#include "document/tags.h"
#include "engine/mode.h"

static const char markdown_prompt[] = "<image>\n<|grounding|>Convert the document to markdown.";
static const char text_prompt[] = "<image>\nFree OCR.";

/* How far back the guard of a second attempt sees: about a dense page, where the first one saw a few lines. */
#define WIDE_WINDOW 2048

/* The page in hand. */
struct page {
    const struct reader *reader;
    const uint8_t *rgb;
    int width, height;
    struct view_config views; /* of the first attempt                     */
    const char *prompt;       /* likewise                                 */
    struct sight sight;       /* likewise                                 */
    struct question question; /* likewise; in the cache until the next is asked */
    bool looped;              /* how the first attempt ended, else the context was full */
};

static bool streams(const struct page *p, bool first)
{
    const struct fathom_callbacks *c = p->reader->callbacks;
    return c && c->on_text && (first || c->on_attempt);
}

static enum fathom_status answer(const struct page *p, const struct sight *sight, const struct question *q,
                                 struct outcome *out, struct fathom_err *err)
{
    const struct fathom_read_options *o = p->reader->options;
    return question_answer(out, p->reader, sight, q, o->ngram, o->ngram_window, streams(p, false), err);
}

static enum fathom_status ask_and_answer(const struct page *p, const struct sight *sight, const char *prompt,
                                         struct outcome *out, struct fathom_err *err)
{
    struct question q;
    enum fathom_status status = question_ask(&q, p->reader, sight, prompt, err);
    if (!status)
        status = answer(p, sight, &q, out, err);
    question_release(&q);
    return status;
}

/* The same prompt about rows [first, first + n) in these views. */
static enum fathom_status look_again(const struct page *p, int first, int n, const struct view_config *views,
                                     struct outcome *out, struct fathom_err *err)
{
    struct arena *arena = &p->reader->ctx->arena;
    struct arena_mark mark = arena_save(arena);
    const uint8_t *rows = p->rgb + (size_t)first * (size_t)p->width * 3;
    struct sight sight;
    enum fathom_status status = sight_take(&sight, p->reader, rows, p->width, n, views, p->prompt, err);
    if (!status)
        status = ask_and_answer(p, &sight, p->prompt, out, err);
    arena_restore(arena, mark);
    return status;
}

/* ---- the attempts -------------------------------------------------------------------------------------------- */

static enum fathom_status first_run(struct page *p, struct outcome *out, struct fathom_err *err)
{
    const struct fathom_read_options *o = p->reader->options;
    enum fathom_status status =
        sight_take(&p->sight, p->reader, p->rgb, p->width, p->height, &p->views, p->prompt, err);
    if (!status)
        status = question_ask(&p->question, p->reader, &p->sight, p->prompt, err);
    if (!status)
        status =
            question_answer(out, p->reader, &p->sight, &p->question, o->ngram, o->ngram_window, streams(p, true), err);
    return status;
}

static const char *wide_guard_name(const struct page *p)
{
    const struct fathom_read_options *o = p->reader->options;
    return p->looped && o->ngram > 0 && o->ngram_window < WIDE_WINDOW ? "wide guard" : NULL;
}

static enum fathom_status wide_guard_run(struct page *p, struct outcome *out, struct fathom_err *err)
{
    int ngram = p->reader->options->ngram;
    return question_answer(out, p->reader, &p->sight, &p->question, ngram, WIDE_WINDOW, streams(p, false), err);
}

/* Tiles were used: without. They were not, but the model has them and the page is large enough: with. */
static enum fathom_mode other_mode(const struct page *p)
{
    const struct view_config *usual = &p->reader->ctx->model->config.view;
    int side = (int)usual->tile_side;
    if (p->sight.tiled)
        return FATHOM_MODE_BASE;
    return usual->tiles && (p->width > side || p->height > side) ? FATHOM_MODE_GUNDAM : FATHOM_MODE_DEFAULT;
}

static const char *other_mode_name(const struct page *p)
{
    if (!p->looped)
        return NULL;
    switch (other_mode(p)) {
    case FATHOM_MODE_BASE: return "mode base";
    case FATHOM_MODE_GUNDAM: return "mode gundam";
    default: return NULL;
    }
}

static enum fathom_status other_mode_run(struct page *p, struct outcome *out, struct fathom_err *err)
{
    struct view_config views;
    enum fathom_status status = mode_views(&views, &p->reader->ctx->model->config, other_mode(p), 0, err);
    return status ? status : look_again(p, 0, p->height, &views, out, err);
}

static const char *free_prompt_name(const struct page *p)
{
    return p->looped && strcmp(p->prompt, markdown_prompt) == 0 ? "free prompt" : NULL;
}

static enum fathom_status free_prompt_run(struct page *p, struct outcome *out, struct fathom_err *err)
{
    return ask_and_answer(p, &p->sight, text_prompt, out, err);
}

static const char *halves_name(const struct page *p)
{
    bool reads_a_page = strcmp(p->prompt, markdown_prompt) == 0 || strcmp(p->prompt, text_prompt) == 0;
    return reads_a_page && halves_row(p->rgb, p->width, p->height) ? "halves" : NULL;
}

static void add_stats(struct fathom_stats *sum, const struct fathom_stats *s)
{
    sum->vision_ms += s->vision_ms;
    sum->prefill_ms += s->prefill_ms;
    sum->decode_ms += s->decode_ms;
    sum->n_views += s->n_views;
    sum->n_prompt_tokens += s->n_prompt_tokens;
    sum->n_output_tokens += s->n_output_tokens;
    sum->vision_flop += s->vision_flop;
    sum->prefill_flop += s->prefill_flop;
    sum->decode_bytes += s->decode_bytes;
    sum->vision_peak_bytes =
        s->vision_peak_bytes > sum->vision_peak_bytes ? s->vision_peak_bytes : sum->vision_peak_bytes;
    sum->kv_bytes = s->kv_bytes > sum->kv_bytes ? s->kv_bytes : sum->kv_bytes;
}

/* The worse end of two. */
static enum fathom_page_status worse(enum fathom_page_status a, enum fathom_page_status b)
{
    if (a == FATHOM_PAGE_LOOPED || b == FATHOM_PAGE_LOOPED)
        return FATHOM_PAGE_LOOPED;
    return a == FATHOM_PAGE_OK ? b : a;
}

static enum fathom_status halves_run(struct page *p, struct outcome *out, struct fathom_err *err)
{
    const struct fathom_callbacks *c = p->reader->callbacks;
    int row = halves_row(p->rgb, p->width, p->height);
    struct outcome upper = {0}, lower = {0};
    enum fathom_status status = look_again(p, 0, row, &p->views, &upper, err);
    if (!status && streams(p, false) && !c->on_text(c->user, HALVES_SEPARATOR, strlen(HALVES_SEPARATOR)))
        status = fail(err, FATHOM_ECANCELLED, "cancelled");
    if (!status)
        status = look_again(p, row, p->height - row, &p->views, &lower, err);
    if (!status)
        status = halves_join(&out->text, strbuf_text(&upper.text), strbuf_text(&lower.text), row, p->height, err);
    out->status = worse(upper.status, lower.status);
    out->context_full = upper.context_full || lower.context_full;
    out->stats = upper.stats;
    add_stats(&out->stats, &lower.stats);
    outcome_release(&upper);
    outcome_release(&lower);
    return status;
}

/* In this order; name: what it is called, or NULL when it makes no sense for this page. */
static const struct rung {
    const char *(*name)(const struct page *p);
    enum fathom_status (*run)(struct page *p, struct outcome *out, struct fathom_err *err);
} ladder[MAX_ATTEMPTS - 1] = {
    {wide_guard_name, wide_guard_run},
    {other_mode_name, other_mode_run},
    {free_prompt_name, free_prompt_run},
    {halves_name, halves_run},
};

/* ---- choosing ------------------------------------------------------------------------------------------------ */

/* Bytes of text outside the layout's tags. */
static size_t text_length(const char *raw)
{
    const char *end = raw + strlen(raw);
    size_t n = (size_t)(end - raw);
    struct tag tag;
    for (const char *p = raw; tag_next(p, end, &tag); p = tag.end)
        n -= (size_t)(tag.end - tag.start);
    return n;
}

static int rank(const struct outcome *o, size_t n_text)
{
    switch (o->status) {
    case FATHOM_PAGE_OK: return n_text ? 2 : 0; /* a page that looped is not empty */
    case FATHOM_PAGE_TRUNCATED: return 1;
    default: return 0;
    }
}

/* Lists the attempt, keeps the better of it and the best so far, and releases the other. */
static void consider(struct reading *r, const char *what, struct outcome *o, double ms)
{
    size_t n = r->n_attempts++, n_old = text_length(strbuf_text(&r->best.text));
    size_t n_new = text_length(strbuf_text(&o->text));
    int old = rank(&r->best, n_old), new = rank(o, n_new);
    bool better = n == 0 || new > old || (new == old &&n_new > n_old);
    r->attempts[n] = (struct fathom_attempt){what, o->status, o->stats.n_output_tokens, ms, better};
    if (better) {
        for (size_t i = 0; i < n; i++)
            r->attempts[i].chosen = false;
        struct outcome worse = r->best;
        r->best = *o;
        *o = worse;
    }
    outcome_release(o);
}

/* Whether a page that ended like this is read again. */
static bool unfinished(const struct outcome *o) { return o->status == FATHOM_PAGE_LOOPED || o->context_full; }

static bool announce(const struct page *p, const char *what)
{
    const struct fathom_callbacks *c = p->reader->callbacks;
    return !c || !c->on_attempt || c->on_attempt(c->user, what);
}

static enum fathom_status climb(struct reading *r, struct page *p, struct fathom_err *err)
{
    p->looped = r->best.status == FATHOM_PAGE_LOOPED;
    for (size_t i = 0; i < MAX_ATTEMPTS - 1 && r->best.status != FATHOM_PAGE_OK; i++) {
        const char *what = ladder[i].name(p);
        struct outcome o = {0};
        if (!what)
            continue;
        if (!announce(p, what))
            return fail(err, FATHOM_ECANCELLED, "cancelled");
        double start = clock_ms();
        enum fathom_status status = ladder[i].run(p, &o, err);
        double ms = clock_ms() - start;
        if (!status) {
            consider(r, what, &o, ms);
            continue;
        }
        enum fathom_page_status end = status == FATHOM_ECANCELLED ? FATHOM_PAGE_TRUNCATED : FATHOM_PAGE_FAILED;
        r->attempts[r->n_attempts++] = (struct fathom_attempt){what, end, o.stats.n_output_tokens, ms, false};
        outcome_release(&o);
        if (status == FATHOM_ECANCELLED)
            return status;
    }
    return FATHOM_OK;
}

enum fathom_status reading_run(struct reading *out, const struct reader *reader, const uint8_t *rgb, int width,
                               int height, struct fathom_err *err)
{
    const struct fathom_read_options *o = reader->options;
    struct arena *arena = &reader->ctx->arena;
    struct arena_mark mark = arena_save(arena);
    struct page page = {.reader = reader, .rgb = rgb, .width = width, .height = height};
    struct outcome first = {0};
    enum fathom_status status;

    *out = (struct reading){0};
    page.prompt = o->prompt ? o->prompt : markdown_prompt;
    if ((status = mode_views(&page.views, &reader->ctx->model->config, o->mode, o->max_tiles, err)))
        return status;
    arena_reset_peak(arena);
    double start = clock_ms();
    status = first_run(&page, &first, err);
    if (!status || status == FATHOM_ECANCELLED)
        consider(out, "first", &first, clock_ms() - start);
    if (!status && !o->no_retry && unfinished(&out->best))
        status = climb(out, &page, err);
    out->best.stats.arena_peak_bytes = arena->peak_bytes;
    question_release(&page.question);
    outcome_release(&first);
    arena_restore(arena, mark);
    return status;
}

void reading_release(struct reading *r) { outcome_release(&r->best); }
