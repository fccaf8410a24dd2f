/* Pages that outlive the call that read them. */
#include "document/layout.h"

#include <stdlib.h>
#include <string.h>

struct restored {
    struct fathom_page page; /* first: what the caller holds */
    struct layout layout;
    char *raw, *markdown, *text_layer;
    struct fathom_attempt *attempts;
};

static char *copy(const char *text, enum fathom_status *status)
{
    char *own = text ? strdup(text) : NULL;
    if (text && !own)
        *status = FATHOM_ENOMEM;
    return own;
}

static enum fathom_status copy_attempts(struct restored *r, const struct fathom_page *kept)
{
    enum fathom_status status = FATHOM_OK;
    if (!(r->attempts = calloc(kept->n_attempts + 1, sizeof *r->attempts)))
        return FATHOM_ENOMEM;
    for (size_t i = 0; i < kept->n_attempts; i++) {
        r->attempts[i] = kept->attempts[i];
        r->attempts[i].what = copy(kept->attempts[i].what, &status);
    }
    r->page.attempts = r->attempts;
    r->page.n_attempts = kept->n_attempts;
    return status;
}

enum fathom_status fathom_page_restore(const struct fathom_page *kept, struct fathom_page **out, struct fathom_err *err)
{
    *out = NULL;
    struct restored *r = calloc(1, sizeof *r);
    if (!r)
        return fail_nomem(err, sizeof *r, "a page");
    r->page = *kept;
    r->page.rgb = r->page.jpeg = NULL;
    r->page.jpeg_bytes = r->page.n_blocks = r->page.n_attempts = 0;

    enum fathom_status status = FATHOM_OK, parsed = FATHOM_OK;
    r->page.raw = r->raw = copy(kept->raw ? kept->raw : "", &status);
    r->page.text_layer = r->text_layer = copy(kept->text_layer, &status);
    if (copy_attempts(r, kept) || status)
        status = fail_nomem(err, sizeof *r, "a page");
    else if (!(parsed = layout_parse(&r->layout, r->raw, kept->width, kept->height, err)))
        parsed = layout_markdown(r->raw, &r->markdown, err);
    r->page.blocks = r->layout.blocks;
    r->page.n_blocks = r->layout.n_blocks;
    r->page.markdown = r->markdown;
    if (status || parsed) {
        fathom_page_free(&r->page);
        return status ? status : parsed;
    }
    *out = &r->page;
    return FATHOM_OK;
}

void fathom_page_free(struct fathom_page *page)
{
    struct restored *r = (struct restored *)page;
    if (!r)
        return;
    for (size_t i = 0; i < r->page.n_attempts; i++)
        free((char *)r->attempts[i].what);
    free(r->attempts);
    layout_free(&r->layout);
    free(r->raw);
    free(r->markdown);
    free(r->text_layer);
    free(r);
}

/* Without a matrix the page's size decides, and without a size the pixels count as 72 an inch. */
void fathom_page_box_pt(const struct fathom_page *page, const struct fathom_box *box, double out[4])
{
    bool sized = page->width_pt > 0 && page->height_pt > 0 && page->width > 0 && page->height > 0;
    const double scale[6] = {sized ? page->width_pt / page->width : 1, 0, 0,
                             sized ? page->height_pt / page->height : 1};
    const double *m = page->to_document;
    if (m[0] == 0 && m[1] == 0 && m[2] == 0 && m[3] == 0)
        m = scale;
    for (int axis = 0; axis < 2; axis++) {
        double one = m[axis] * box->x0 + m[2 + axis] * box->y0 + m[4 + axis];
        double other = m[axis] * box->x1 + m[2 + axis] * box->y1 + m[4 + axis];
        out[axis] = one < other ? one : other;
        out[2 + axis] = one < other ? other : one;
    }
}
