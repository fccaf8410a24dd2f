/* Markdown: the pages' own, each ended by a line feed, with an empty line between them. */
#include "document/figures.h"
#include "document/layout.h"
#include "document/markup.h"
#include "document/writer.h"

#include <stdlib.h>
#include <string.h>

/* A link names the folder of this document and, where there are several pages, the page. */
static enum fathom_status linked(struct fathom_writer *w, const struct fathom_page *page, char **out,
                                 struct fathom_err *err)
{
    struct strbuf folder = {0};
    enum fathom_status status;
    add_folder_url(&folder, w->options.figures, page);
    if (folder.failed)
        status = fail_nomem(err, folder.n, "a link");
    else
        status = layout_markdown_linked(page->raw ? page->raw : "", strbuf_text(&folder), out, err);
    strbuf_free(&folder);
    return status;
}

static enum fathom_status write_page(struct fathom_writer *w, const struct fathom_page *page, struct fathom_err *err)
{
    if (w->n_pages)
        strbuf_adds(&w->out, "\n");
    if (page->status == FATHOM_PAGE_FAILED) {
        strbuf_adds(&w->out, "<!-- ");
        add_failure(&w->out, page);
        strbuf_adds(&w->out, " -->\n");
        return FATHOM_OK;
    }
    const char *text = page->markdown ? page->markdown : "";
    char *own = NULL;
    if (w->options.figures && fathom_page_figures(page)) {
        enum fathom_status status = linked(w, page, &own, err);
        if (status)
            return status;
        text = own;
    }
    size_t n = strlen(text);
    strbuf_add(&w->out, text, n);
    if (n == 0 || text[n - 1] != '\n')
        strbuf_adds(&w->out, "\n");
    free(own);
    return FATHOM_OK;
}

const struct writer_format writer_markdown = {.page = write_page};
