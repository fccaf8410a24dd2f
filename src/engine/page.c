#include "engine/page.h"

#include <stdlib.h>

#include "document/layout.h"
#include "engine/retry.h"

/* Hands the finished page with its output to on_page. */
static enum fathom_status deliver(const struct reader *reader, struct fathom_page *page, const char *raw,
                                  struct fathom_err *err)
{
    const struct fathom_callbacks *c = reader->callbacks;
    struct layout layout = {0};
    char *markdown = NULL;
    enum fathom_status status;

    if (!(status = layout_parse(&layout, raw, page->width, page->height, err)) &&
        !(status = layout_markdown(raw, &markdown, err))) {
        page->raw = raw;
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

enum fathom_status page_deliver_failed(const struct reader *reader, struct fathom_page *page,
                                       const struct fathom_err *why, struct fathom_err *err)
{
    page->status = FATHOM_PAGE_FAILED;
    page->err = *why;
    return deliver(reader, page, "", err);
}

/* Why the numbers failed: a damaged weight is looked for and named. */
static void explain_not_finite(const struct fathom_model *model, struct fathom_err *err)
{
    const char *name;
    if (weights_find_nonfinite(model->weights, &name))
        fail(err, FATHOM_ENUMERIC, "the model's tensor '%s' holds values that are not finite", name);
}

/* The caller may have the page's text already. */
static enum fathom_choice choose(const struct reader *reader, const struct fathom_page *page)
{
    const struct fathom_callbacks *c = reader->callbacks;
    struct fathom_page shown = *page;
    shown.raw = shown.markdown = "";
    return c && c->on_pixels ? c->on_pixels(c->user, &shown) : FATHOM_READ;
}

static enum fathom_status read_chosen(const struct reader *reader, struct fathom_page *page, struct fathom_err *err)
{
    const struct fathom_model *model = reader->ctx->model;
    double decode_image_ms = page->stats.decode_image_ms;
    struct reading reading;
    enum fathom_status delivered, status = reading_run(&reading, reader, page->rgb, page->width, page->height, err);

    page->stats = reading.best.stats;
    page->stats.decode_image_ms = decode_image_ms;
    page->stats.mapped_bytes = weights_mapped_bytes(model->weights);
    page->attempts = reading.attempts;
    page->n_attempts = reading.n_attempts;
    if (status == FATHOM_ENUMERIC)
        explain_not_finite(model, err);
    if (status && status != FATHOM_ECANCELLED) {
        const struct fathom_err why = *err;
        delivered = page_deliver_failed(reader, page, &why, err);
        status = FATHOM_OK;
    } else { /* a cancelled page is handed over too, so that its text so far is not lost */
        bool again = reading.best.status == FATHOM_PAGE_OK && !reading.attempts[0].chosen;
        page->status = status ? FATHOM_PAGE_TRUNCATED : again ? FATHOM_PAGE_RETRIED : reading.best.status;
        delivered = deliver(reader, page, strbuf_text(&reading.best.text), err);
    }
    reading_release(&reading);
    return status ? fail(err, status, "cancelled") : delivered;
}

enum fathom_status page_read(const struct reader *reader, struct fathom_page *page, struct fathom_err *err)
{
    switch (choose(reader, page)) {
    case FATHOM_STOP: return fail(err, FATHOM_ECANCELLED, "cancelled");
    case FATHOM_SKIP: return FATHOM_OK;
    case FATHOM_READ: break;
    }
    return read_chosen(reader, page, err);
}
