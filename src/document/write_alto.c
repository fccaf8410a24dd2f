/* ALTO 4. The model places blocks, not words: text blocks have boxes, their lines and strings have none. */
#include "document/figures.h"
#include "document/kind.h"
#include "document/markup.h"
#include "document/writer.h"

#include <string.h>

static enum fathom_status begin(struct fathom_writer *w, struct fathom_err *err)
{
    (void)err;
    strbuf_adds(&w->out,
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                "<alto xmlns=\"http://www.loc.gov/standards/alto/ns-v4#\" SCHEMAVERSION=\"4.4\">\n<Description>\n"
                "<MeasurementUnit>pixel</MeasurementUnit>\n<sourceImageInformation><fileName>");
    add_xml(&w->out, w->options.file, strlen(w->options.file));
    strbuf_adds(&w->out, "</fileName></sourceImageInformation>\n<Processing ID=\"fathom\">"
                         "<processingCategory>contentGeneration</processingCategory>");
    if (w->options.model) {
        strbuf_adds(&w->out, "<processingStepSettings>model ");
        add_xml(&w->out, w->options.model, strlen(w->options.model));
        strbuf_adds(&w->out, "</processingStepSettings>");
    }
    strbuf_addf(&w->out,
                "<processingSoftware><softwareName>fathom</softwareName><softwareVersion>%s</softwareVersion>"
                "</processingSoftware></Processing>\n</Description>\n<Tags>\n",
                fathom_version());
    for (int kind = 0; kind < N_KINDS; kind++)
        strbuf_addf(&w->out, "<LayoutTag ID=\"kind_%s\" LABEL=\"%s\"/>\n", kind_name((enum kind)kind),
                    kind_name((enum kind)kind));
    strbuf_adds(&w->out, "</Tags>\n<Layout>\n");
    return FATHOM_OK;
}

static void add_place(struct strbuf *out, const struct fathom_box *box)
{
    strbuf_addf(out, " HPOS=\"%d\" VPOS=\"%d\" WIDTH=\"%d\" HEIGHT=\"%d\"", box->x0, box->y0, box->x1 - box->x0,
                box->y1 - box->y0);
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* A line's words, each a String, with SP between them. */
static void add_line(struct strbuf *out, const char *line, const char *end)
{
    const char *begun = line;
    while (line < end && is_blank(*line))
        line++;
    if (line == end)
        return;
    strbuf_adds(out, "<TextLine>");
    for (begun = line; line < end;) {
        const char *to = line;
        while (to < end && !is_blank(*to))
            to++;
        strbuf_adds(out, line == begun ? "<String CONTENT=\"" : "<SP/><String CONTENT=\"");
        add_xml(out, line, (size_t)(to - line));
        strbuf_adds(out, "\"/>");
        for (line = to; line < end && is_blank(*line);)
            line++;
    }
    strbuf_adds(out, "</TextLine>\n");
}

static enum fathom_status add_lines(struct strbuf *out, const char *text, struct fathom_err *err)
{
    struct strbuf plain = {0};
    enum fathom_status status = markup_add_plain(&plain, text, err);
    const char *line = strbuf_text(&plain), *end = line + plain.n;
    while (line < end) {
        const char *to = memchr(line, '\n', (size_t)(end - line));
        to = to ? to : end;
        add_line(out, line, to);
        line = to + (to < end);
    }
    out->failed = out->failed || plain.failed;
    strbuf_free(&plain);
    return status;
}

static enum fathom_status add_block(struct strbuf *out, const struct fathom_page *page, size_t i,
                                    struct fathom_err *err)
{
    const struct fathom_block *block = &page->blocks[i];
    enum kind kind = block_kind(block);
    struct fathom_box box;
    enum fathom_status status = FATHOM_OK;
    bool picture = label_is_image(block->label, strlen(block->label)), placed = block_bounds(block, &box);
    if (picture) {
        strbuf_addf(out, "<Illustration ID=\"figure_%zu_%zu\" TAGREFS=\"kind_%s\"", page->number, i + 1,
                    kind_name(kind));
        if (placed)
            add_place(out, &box);
        strbuf_adds(out, "/>\n");
    }
    if (!picture || *block->text) {
        strbuf_addf(out, "<TextBlock ID=\"block_%zu_%zu\" TAGREFS=\"kind_%s\"", page->number, i + 1,
                    kind_name(picture ? KIND_CAPTION : kind));
        if (placed && !picture) /* what stands below a picture is elsewhere */
            add_place(out, &box);
        strbuf_adds(out, ">\n");
        status = add_lines(out, block->text, err);
        strbuf_adds(out, "</TextBlock>\n");
    }
    return status;
}

static enum fathom_status write_page(struct fathom_writer *w, const struct fathom_page *page, struct fathom_err *err)
{
    enum fathom_status status = FATHOM_OK;
    strbuf_addf(&w->out,
                "<Page ID=\"page_%zu\" PHYSICAL_IMG_NR=\"%zu\" WIDTH=\"%d\" HEIGHT=\"%d\" PROCESSING=\"fathom\"",
                page->number, page->number, page->width, page->height);
    if (page->status == FATHOM_PAGE_FAILED) {
        strbuf_adds(&w->out, " QUALITY=\"Missing\" QUALITY_DETAIL=\"");
        add_failure(&w->out, page);
        strbuf_adds(&w->out, "\"");
    }
    strbuf_adds(&w->out, ">\n<PrintSpace");
    add_place(&w->out, &(struct fathom_box){0, 0, page->width, page->height});
    strbuf_adds(&w->out, ">\n");
    for (size_t i = 0; i < page->n_blocks && !status; i++)
        status = add_block(&w->out, page, i, err);
    strbuf_adds(&w->out, "</PrintSpace>\n</Page>\n");
    return status;
}

static enum fathom_status end(struct fathom_writer *w, struct fathom_err *err)
{
    (void)err;
    if (w->n_pages == 0) /* a layout has one page at least */
        strbuf_adds(&w->out, "<Page ID=\"page_0\" PHYSICAL_IMG_NR=\"0\" QUALITY=\"Missing\"/>\n");
    strbuf_adds(&w->out, "</Layout>\n</alto>\n");
    return FATHOM_OK;
}

const struct writer_format writer_alto = {.begin = begin, .page = write_page, .end = end};
