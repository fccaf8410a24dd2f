/* Searchable PDF: each page's picture as it is, and over it the text, invisible, in its boxes. */
#include "base/utf8.h"
#include "document/markup.h"
#include "document/pdf_file.h"
#include "document/pdf_font.h"
#include "document/pdf_picture.h"
#include "document/pdf_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pdf {
    struct pdf_file file;
    struct pdf_font font;
    struct pdf_file pages; /* the numbers of the pages' objects, as offsets */
    size_t catalog, tree, info, type0, cid_font, descriptor, to_unicode, glyphs, program;
};

static enum fathom_status begin(struct fathom_writer *w, struct fathom_err *err)
{
    struct pdf *pdf = w->state;
    size_t *const numbers[] = {&pdf->catalog,    &pdf->tree,       &pdf->info,   &pdf->type0,  &pdf->cid_font,
                               &pdf->descriptor, &pdf->to_unicode, &pdf->glyphs, &pdf->program};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!(*numbers[i] = pdf_new_object(&pdf->file)))
            return fail_nomem(err, sizeof *pdf->file.offsets, "an object");
    strbuf_adds(&w->out, "%PDF-1.6\n%\xe2\xe3\xcf\xd3\n");
    return FATHOM_OK;
}

/* ---- a page -------------------------------------------------------------------------------------------------- */

/* How large the page is in the file: its own size in points, or an inch for 72 pixels, or A4 when nothing is known.
 * unit: points in a unit, more than 1 for pages of more than 200 inches. */
struct sheet {
    double width, height, unit;
};

static struct sheet page_sheet(const struct fathom_page *page)
{
    struct sheet s = {page->width_pt, page->height_pt, 1};
    if (!(s.width > 0 && s.height > 0 && isfinite(s.width) && isfinite(s.height))) {
        s.width = page->width;
        s.height = page->height;
    }
    if (!(s.width > 0 && s.height > 0))
        s = (struct sheet){595, 842, 1};
    s.unit = ceil(fmax(fmax(s.width, s.height) / 14400, 1));
    s.width = fmax(s.width / s.unit, 1);
    s.height = fmax(s.height / s.unit, 1);
    return s;
}

/* The block's boxes on the sheet, at least a pixel large; the whole sheet when it has none. */
static struct pdf_area *block_areas(const struct fathom_page *page, const struct fathom_block *block,
                                    const struct sheet *s, size_t *n)
{
    struct pdf_area *areas = calloc(block->n_boxes + 1, sizeof *areas);
    double x = page->width > 0 ? s->width / page->width : 0, y = page->height > 0 ? s->height / page->height : 0;
    *n = block->n_boxes;
    for (size_t i = 0; i < block->n_boxes && areas; i++) {
        const struct fathom_box *box = &block->boxes[i];
        areas[i] = (struct pdf_area){box->x0 * x, s->height - box->y1 * y, box->x1 * x, s->height - box->y0 * y};
        areas[i].x1 = fmax(areas[i].x1, areas[i].x0 + fmax(x, 0.1));
        areas[i].y0 = fmin(areas[i].y0, areas[i].y1 - fmax(y, 0.1));
    }
    if (*n == 0 && areas)
        areas[(*n)++] = (struct pdf_area){0, 0, s->width, s->height};
    return areas;
}

static enum fathom_status add_block(struct strbuf *out, struct pdf *pdf, const struct fathom_page *page,
                                    const struct fathom_block *block, const struct sheet *s, struct fathom_err *err)
{
    struct strbuf plain = {0};
    size_t n;
    struct pdf_area *areas = block_areas(page, block, s, &n);
    enum fathom_status status =
        areas ? markup_add_plain(&plain, block->text, err) : fail_nomem(err, n * sizeof *areas, "a block");
    if (plain.failed)
        status = fail_nomem(err, plain.n, "a block");
    if (!status && plain.n)
        status = pdf_add_text(out, &pdf->font, plain.text, plain.n, areas, n, err);
    strbuf_free(&plain);
    free(areas);
    return status;
}

static enum fathom_status add_content(struct strbuf *out, struct pdf *pdf, const struct fathom_page *page,
                                      const struct sheet *s, bool picture, struct fathom_err *err)
{
    enum fathom_status status = FATHOM_OK;
    if (picture) {
        strbuf_adds(out, "q ");
        strbuf_add_decimal(out, s->width, 4);
        strbuf_adds(out, " 0 0 ");
        strbuf_add_decimal(out, s->height, 4);
        strbuf_adds(out, " 0 0 cm /P Do Q\n");
    }
    strbuf_adds(out, "BT 3 Tr\n");
    for (size_t i = 0; i < page->n_blocks && !status; i++)
        status = add_block(out, pdf, page, &page->blocks[i], s, err);
    strbuf_adds(out, "ET\n");
    if (!status && out->failed)
        status = fail_nomem(err, out->n, "a page");
    return status;
}

static void add_page_object(struct fathom_writer *w, struct pdf *pdf, size_t number, const struct sheet *s,
                            size_t picture, size_t content)
{
    pdf_begin_object(w, &pdf->file, number);
    strbuf_addf(&w->out, "<< /Type /Page /Parent %zu 0 R /MediaBox [0 0 ", pdf->tree);
    strbuf_add_decimal(&w->out, s->width, 4);
    strbuf_adds(&w->out, " ");
    strbuf_add_decimal(&w->out, s->height, 4);
    strbuf_adds(&w->out, "] ");
    if (s->unit > 1) {
        strbuf_adds(&w->out, "/UserUnit ");
        strbuf_add_decimal(&w->out, s->unit, 0);
    }
    strbuf_addf(&w->out, " /Contents %zu 0 R /Resources << /Font << /F %zu 0 R >> ", content, pdf->type0);
    if (picture)
        strbuf_addf(&w->out, "/XObject << /P %zu 0 R >> ", picture);
    strbuf_adds(&w->out, ">> >>\n");
    pdf_end_object(w);
}

static enum fathom_status write_page(struct fathom_writer *w, const struct fathom_page *page, struct fathom_err *err)
{
    struct pdf *pdf = w->state;
    bool pixels = page->width > 0 && page->height > 0 && (page->rgb || pdf_takes_jpeg(page));
    if (!pixels && page->status != FATHOM_PAGE_FAILED)
        return fail(err, FATHOM_EINVAL, "page %zu has no pixels, which a PDF needs", page->number);

    size_t number = pdf_new_object(&pdf->file), content = pdf_new_object(&pdf->file);
    size_t picture = pixels ? pdf_new_object(&pdf->file) : 0, kid = pdf_new_object(&pdf->pages);
    if (!number || !content || !kid || (pixels && !picture))
        return fail_nomem(err, sizeof *pdf->file.offsets, "an object");
    pdf->pages.offsets[kid - 1] = number;
    struct sheet s = page_sheet(page);
    struct strbuf operators = {0};
    enum fathom_status status = add_content(&operators, pdf, page, &s, pixels, err);
    if (!status)
        status = pdf_add_stream(w, &pdf->file, content, "", strbuf_text(&operators), operators.n, err);
    strbuf_free(&operators);
    if (!status && pixels)
        status = pdf_add_picture(w, &pdf->file, picture, page, err);
    if (!status)
        add_page_object(w, pdf, number, &s, picture, content);
    return status;
}

/* ---- the end ------------------------------------------------------------------------------------------------- */

/* UTF-8 as a text string: UTF-16 in hexadecimal digits. */
static void add_text_string(struct strbuf *out, const char *text)
{
    size_t n = strlen(text);
    strbuf_adds(out, "<FEFF");
    for (size_t i = 0; i < n;) {
        uint32_t code;
        size_t length = utf8_decode(text + i, n - i, &code);
        i += length ? length : 1;
        code = length ? code : 0xfffd;
        if (code < 0x10000)
            strbuf_addf(out, "%04X", (unsigned)code);
        else
            strbuf_addf(out, "%04X%04X", (unsigned)(0xd800 + ((code - 0x10000) >> 10)),
                        (unsigned)(0xdc00 + ((code - 0x10000) & 0x3ff)));
    }
    strbuf_adds(out, ">");
}

static void add_font_objects(struct fathom_writer *w, struct pdf *pdf)
{
    struct strbuf *out = &w->out;
    pdf_begin_object(w, &pdf->file, pdf->type0);
    strbuf_addf(out,
                "<< /Type /Font /Subtype /Type0 /BaseFont /Glyphless /Encoding /Identity-H /DescendantFonts [%zu 0 R] "
                "/ToUnicode %zu 0 R >>\n",
                pdf->cid_font, pdf->to_unicode);
    pdf_end_object(w);
    pdf_begin_object(w, &pdf->file, pdf->cid_font);
    strbuf_addf(out,
                "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Glyphless /FontDescriptor %zu 0 R /CIDToGIDMap %zu 0 "
                "R /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /DW 500 /W [\n",
                pdf->descriptor, pdf->glyphs);
    pdf_font_add_widths(&pdf->font, out);
    strbuf_adds(out, "] >>\n");
    pdf_end_object(w);
    pdf_begin_object(w, &pdf->file, pdf->descriptor);
    strbuf_addf(out,
                "<< /Type /FontDescriptor /FontName /Glyphless /Flags 4 /FontBBox [0 -200 1000 800] /ItalicAngle 0 "
                "/Ascent 800 /Descent -200 /CapHeight 800 /StemV 80 /FontFile2 %zu 0 R >>\n",
                pdf->program);
    pdf_end_object(w);
}

static enum fathom_status add_font_streams(struct fathom_writer *w, struct pdf *pdf, struct fathom_err *err)
{
    struct strbuf map = {0}, glyphs = {0}, program = {0};
    char length[32];
    pdf_font_add_to_unicode(&pdf->font, &map);
    pdf_font_add_glyphs(&pdf->font, &glyphs);
    pdf_font_add_program(&program);
    snprintf(length, sizeof length, "/Length1 %zu", program.n);
    enum fathom_status status = FATHOM_OK;
    if (map.failed || glyphs.failed || program.failed)
        status = fail_nomem(err, map.n + glyphs.n, "a font");
    if (!status)
        status = pdf_add_stream(w, &pdf->file, pdf->to_unicode, "", map.text, map.n, err);
    if (!status)
        status = pdf_add_stream(w, &pdf->file, pdf->glyphs, "", glyphs.text, glyphs.n, err);
    if (!status)
        status = pdf_add_stream(w, &pdf->file, pdf->program, length, program.text, program.n, err);
    strbuf_free(&map);
    strbuf_free(&glyphs);
    strbuf_free(&program);
    return status;
}

static enum fathom_status end(struct fathom_writer *w, struct fathom_err *err)
{
    struct pdf *pdf = w->state;
    struct strbuf *out = &w->out;
    pdf_begin_object(w, &pdf->file, pdf->catalog);
    strbuf_addf(out, "<< /Type /Catalog /Pages %zu 0 R >>\n", pdf->tree);
    pdf_end_object(w);
    pdf_begin_object(w, &pdf->file, pdf->tree);
    strbuf_addf(out, "<< /Type /Pages /Count %zu /Kids [\n", pdf->pages.n);
    for (size_t i = 0; i < pdf->pages.n; i++)
        strbuf_addf(out, "%llu 0 R\n", (unsigned long long)pdf->pages.offsets[i]);
    strbuf_adds(out, "] >>\n");
    pdf_end_object(w);
    pdf_begin_object(w, &pdf->file, pdf->info);
    strbuf_adds(out, "<< /Title ");
    add_text_string(out, w->options.file);
    strbuf_addf(out, " /Producer (fathom %s) >>\n", fathom_version());
    pdf_end_object(w);
    add_font_objects(w, pdf);
    enum fathom_status status = add_font_streams(w, pdf, err);
    if (!status)
        pdf_add_end(w, &pdf->file, pdf->catalog, pdf->info);
    return status;
}

static void release(struct fathom_writer *w)
{
    struct pdf *pdf = w->state;
    pdf_file_free(&pdf->file);
    pdf_file_free(&pdf->pages);
    pdf_font_free(&pdf->font);
}

const struct writer_format writer_pdf = {
    .state_bytes = sizeof(struct pdf), .begin = begin, .page = write_page, .end = end, .release = release};
