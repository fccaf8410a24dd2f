/* Plain text: the blocks in reading order with an empty line between them; pages end with a form feed but for the last. */
#include "base/utf8.h"
#include "document/markup.h"
#include "document/writer.h"

#include <string.h>

/* A form feed in a page would look like its end, other controls may do worse to what shows them. */
static void add_clean(struct strbuf *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t code;
        size_t length = utf8_decode(text + i, n - i, &code);
        if (!length)
            strbuf_adds(out, "\uFFFD");
        else if ((code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7f && code < 0xa0))
            strbuf_adds(out, " ");
        else
            strbuf_add(out, text + i, length);
        i += length ? length : 1;
    }
}

/* Adds a block that has text, behind an empty line unless it is the first one since start. */
static enum fathom_status add_block(struct strbuf *out, size_t start, const char *text, struct fathom_err *err)
{
    struct strbuf plain = {0};
    enum fathom_status status = markup_add_plain(&plain, text, err);
    if (plain.n) {
        strbuf_adds(out, out->n > start ? "\n" : "");
        add_clean(out, plain.text, plain.n);
        strbuf_adds(out, "\n");
    }
    out->failed = out->failed || plain.failed;
    strbuf_free(&plain);
    return status;
}

static enum fathom_status write_page(struct fathom_writer *w, const struct fathom_page *page, struct fathom_err *err)
{
    if (w->n_pages)
        strbuf_adds(&w->out, "\f");
    if (page->status == FATHOM_PAGE_FAILED) {
        strbuf_addf(&w->out, "[page %zu failed: ", page->number);
        add_clean(&w->out, page->err.message, strlen(page->err.message));
        strbuf_adds(&w->out, "]\n");
        return FATHOM_OK;
    }
    enum fathom_status status = FATHOM_OK;
    size_t start = w->out.n;
    for (size_t i = 0; i < page->n_blocks && !status; i++)
        status = add_block(&w->out, start, page->blocks[i].text, err);
    return status;
}

const struct writer_format writer_text = {.page = write_page};
