/* hOCR 1.2. The model places blocks, not words: areas have boxes, their lines have none. */
#include "document/figures.h"
#include "document/kind.h"
#include "document/markup.h"
#include "document/writer.h"

#include <string.h>

static enum fathom_status begin(struct fathom_writer *w, struct fathom_err *err)
{
    (void)err;
    const char *title = *w->options.file ? w->options.file : "fathom";
    strbuf_adds(&w->out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                         "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Transitional//EN\" "
                         "\"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd\">\n"
                         "<html xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<title>");
    add_xml(&w->out, title, strlen(title));
    strbuf_adds(&w->out, "</title>\n<meta http-equiv=\"Content-Type\" content=\"text/html;charset=utf-8\" />\n"
                         "<meta name=\"ocr-system\" content=\"fathom ");
    strbuf_adds(&w->out, fathom_version());
    strbuf_adds(&w->out, "\" />\n<meta name=\"ocr-capabilities\" content=\"ocr_page ocr_carea ocr_table ocr_image "
                         "ocr_caption\" />\n</head>\n<body>\n");
    return FATHOM_OK;
}

static const char *class_name(enum kind kind)
{
    switch (kind) {
    case KIND_FIGURE: return "ocr_image";
    case KIND_TABLE: return "ocr_table";
    case KIND_CAPTION: return "ocr_caption";
    case KIND_TEXT:
    case KIND_TITLE:
    case KIND_FORMULA:
    case KIND_OTHER:
    case N_KINDS: break;
    }
    return "ocr_carea";
}

static enum fathom_status add_lines(struct strbuf *out, const char *text, struct fathom_err *err)
{
    struct strbuf plain = {0};
    enum fathom_status status = markup_add_plain(&plain, text, err);
    const char *line = strbuf_text(&plain), *end = line + plain.n;
    if (line < end)
        strbuf_adds(out, "<p>");
    while (line < end) {
        const char *to = memchr(line, '\n', (size_t)(end - line));
        to = to ? to : end;
        add_xml(out, line, (size_t)(to - line));
        line = to + (to < end);
        strbuf_adds(out, line < end ? "<br />\n" : "</p>");
    }
    out->failed = out->failed || plain.failed;
    strbuf_free(&plain);
    return status;
}

/* image "FILE"; bbox 0 0 W H; ppageno N; scan_res X Y */
static void add_page_title(struct fathom_writer *w, const struct fathom_page *page)
{
    strbuf_adds(&w->out, "image &quot;");
    for (const char *c = w->options.file; *c;) { /* the property ends with the second quotation mark */
        size_t n = strcspn(c, "\"\n");
        add_xml(&w->out, c, n);
        c += n;
        strbuf_adds(&w->out, *c ? "'" : "");
        c += *c != 0;
    }
    strbuf_addf(&w->out, "&quot;; bbox 0 0 %d %d; ppageno %zu", page->width, page->height,
                page->number ? page->number - 1 : 0);
    if (page->width_pt > 0 && page->height_pt > 0 && page->width > 0) {
        strbuf_adds(&w->out, "; scan_res ");
        strbuf_add_decimal(&w->out, page->width * 72 / page->width_pt, 0);
        strbuf_adds(&w->out, " ");
        strbuf_add_decimal(&w->out, page->height * 72 / page->height_pt, 0);
    }
}

static enum fathom_status write_page(struct fathom_writer *w, const struct fathom_page *page, struct fathom_err *err)
{
    enum fathom_status status = FATHOM_OK;
    strbuf_addf(&w->out, "<div class=\"ocr_page\" id=\"page_%zu\" title=\"", page->number);
    add_page_title(w, page);
    strbuf_adds(&w->out, "\">\n");
    if (page->status == FATHOM_PAGE_FAILED) {
        strbuf_adds(&w->out, "<!-- ");
        add_failure(&w->out, page);
        strbuf_adds(&w->out, " -->\n");
    }
    for (size_t i = 0; i < page->n_blocks && !status; i++) {
        const struct fathom_block *block = &page->blocks[i];
        struct fathom_box box;
        strbuf_addf(&w->out, "<div class=\"%s\" id=\"block_%zu_%zu\"", class_name(block_kind(block)), page->number,
                    i + 1);
        if (block_bounds(block, &box))
            strbuf_addf(&w->out, " title=\"bbox %d %d %d %d\"", box.x0, box.y0, box.x1, box.y1);
        strbuf_adds(&w->out, ">");
        status = add_lines(&w->out, block->text, err);
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

const struct writer_format writer_hocr = {.begin = begin, .page = write_page, .end = end};
