/* HTML: one file that needs no other, with no script and no way to load any. */
#include "document/figures.h"
#include "document/html_text.h"
#include "document/kind.h"
#include "document/markup.h"
#include "document/writer.h"

#include <string.h>

static enum fathom_status begin(struct fathom_writer *w, struct fathom_err *err)
{
    (void)err;
    const char *title = *w->options.file ? w->options.file : "fathom";
    strbuf_adds(&w->out,
                "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data: 'self'; "
                "style-src 'unsafe-inline'\">\n"
                "<meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"generator\" content=\"");
    strbuf_addf(&w->out, "fathom %s", fathom_version());
    strbuf_adds(&w->out, "\">\n<title>");
    add_xml(&w->out, title, strlen(title));
    strbuf_adds(&w->out, "</title>\n<style>\n"
                         "body { max-width: 50em; margin: auto; padding: 1em; font-family: serif; line-height: 1.4 }\n"
                         ".page + .page { border-top: thin solid; margin-top: 2em }\n"
                         ".failed { color: #a00 }\n"
                         ".other { color: #666; font-size: smaller }\n"
                         ".caption { font-style: italic }\n"
                         "table { border-collapse: collapse }\n"
                         "td, th { border: thin solid; padding: 0.2em 0.5em; vertical-align: top }\n"
                         "img { max-width: 100% }\n"
                         ".formula, pre { white-space: pre-wrap }\n"
                         "</style>\n</head>\n<body>\n");
    return FATHOM_OK;
}

/* ---- pictures ------------------------------------------------------------------------------------------------ */

/* Bytes that wait for a third one. */
struct base64 {
    struct fathom_writer *w;
    uint8_t rest[3];
    size_t n;
    struct fathom_err *err;
};

static void put_group(struct strbuf *out, const uint8_t in[3], size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned bits = (unsigned)(in[0] << 16 | in[1] << 8 | in[2]);
    char group[4] = {digits[bits >> 18], digits[bits >> 12 & 63], n > 1 ? digits[bits >> 6 & 63] : '=',
                     n > 2 ? digits[bits & 63] : '='};
    strbuf_add(out, group, 4);
}

static bool add_base64(void *user, const char *bytes, size_t n)
{
    struct base64 *b = user;
    for (size_t i = 0; i < n; i++) {
        b->rest[b->n++] = (uint8_t)bytes[i];
        if (b->n == 3) {
            put_group(&b->w->out, b->rest, 3);
            b->n = 0;
        }
    }
    return writer_flush(b->w, b->err) == FATHOM_OK;
}

static enum fathom_status add_data_uri(struct fathom_writer *w, const struct fathom_page *page,
                                       const struct fathom_block *block, struct fathom_err *err)
{
    struct fathom_err sent = {0}, ignored;
    struct base64 b = {.w = w, .err = &sent};
    strbuf_adds(&w->out, "data:image/jpeg;base64,");
    enum fathom_status status = block_jpeg(page, block, add_base64, &b, err ? err : &ignored);
    if (sent.status && err)
        *err = sent;
    if (status)
        return sent.status ? sent.status : status;
    if (b.n) {
        memset(b.rest + b.n, 0, 3 - b.n);
        put_group(&w->out, b.rest, b.n);
    }
    return FATHOM_OK;
}

/* A figure is shown when its pixels are there, linked when its file is, and else only named. */
static enum fathom_status add_figure(struct fathom_writer *w, const struct fathom_page *page,
                                     const struct fathom_block *block, size_t k, struct fathom_err *err)
{
    enum fathom_status status = FATHOM_OK;
    bool shown = page->rgb && block->n_boxes;
    strbuf_adds(&w->out, "<figure>");
    if (shown || w->options.figures) {
        strbuf_adds(&w->out, "<img src=\"");
        if (shown)
            status = add_data_uri(w, page, block, err);
        else
            add_figure_url(&w->out, w->options.figures, page, k);
        strbuf_addf(&w->out, "\" alt=\"figure %zu of page %zu\">", k + 1, page->number);
    } else {
        strbuf_addf(&w->out, "[figure %zu of page %zu]", k + 1, page->number);
    }
    strbuf_adds(&w->out, "</figure>\n");
    return status;
}

static enum fathom_status write_page(struct fathom_writer *w, const struct fathom_page *page, struct fathom_err *err)
{
    enum fathom_status status = FATHOM_OK;
    size_t n_figures = 0;
    strbuf_addf(&w->out, "<div class=\"page\" id=\"page-%zu\">\n", page->number);
    if (page->status == FATHOM_PAGE_FAILED) {
        strbuf_adds(&w->out, "<p class=\"failed\">");
        add_failure(&w->out, page);
        strbuf_adds(&w->out, "</p>\n");
    }
    for (size_t i = 0; i < page->n_blocks && !status; i++) {
        const struct fathom_block *block = &page->blocks[i];
        strbuf_addf(&w->out, "<div class=\"%s\" dir=\"auto\">\n", kind_name(block_kind(block)));
        if (label_is_image(block->label, strlen(block->label)))
            status = add_figure(w, page, block, n_figures++, err);
        if (!status)
            status = html_add_text(&w->out, block->text, err);
        strbuf_adds(&w->out, "</div>\n");
    }
    strbuf_adds(&w->out, "</div>\n");
    return status;
}

static enum fathom_status end(struct fathom_writer *w, struct fathom_err *err)
{
    (void)err;
    strbuf_adds(&w->out, "</body>\n</html>\n");
    return FATHOM_OK;
}

const struct writer_format writer_html = {.begin = begin, .page = write_page, .end = end};
