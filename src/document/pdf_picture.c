#include "document/pdf_picture.h"

#include "image/png_write.h"

#include <string.h>

struct jpeg_header {
    int width, height, n_components;
    bool adobe; /* CMYK is stored inverted */
};

static int u16(const uint8_t *b) { return b[0] << 8 | b[1]; }

/* The first frame's header; false for what a PDF cannot hold: other than 8 bits, lossless, arithmetic coding. */
static bool read_header(const uint8_t *b, size_t n, struct jpeg_header *h)
{
    *h = (struct jpeg_header){0};
    if (n < 4 || b[0] != 0xff || b[1] != 0xd8)
        return false;
    for (size_t at = 2; n - at >= 4 && b[at] == 0xff;) {
        int marker = b[at + 1];
        size_t length = (size_t)u16(b + at + 2);
        if (marker == 0xff) { /* filling */
            at++;
            continue;
        }
        if (length < 2 || length > n - at - 2 || marker == 0xd9 || marker == 0xda)
            return false;
        if (marker == 0xee && length >= 14 && memcmp(b + at + 4, "Adobe", 5) == 0)
            h->adobe = true;
        if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) {
            if (marker > 0xc2 || length < 8 || b[at + 4] != 8)
                return false;
            h->height = u16(b + at + 5);
            h->width = u16(b + at + 7);
            h->n_components = b[at + 9];
            return h->n_components == 1 || h->n_components == 3 || h->n_components == 4;
        }
        at += 2 + length;
    }
    return false;
}

bool pdf_takes_jpeg(const struct fathom_page *page)
{
    struct jpeg_header h;
    return page->jpeg && read_header(page->jpeg, page->jpeg_bytes, &h) && h.width == page->width &&
           h.height == page->height;
}

static void begin_picture(struct fathom_writer *w, struct pdf_file *f, size_t number, const struct fathom_page *page,
                          const char *colours)
{
    pdf_begin_object(w, f, number);
    strbuf_addf(&w->out, "<< /Type /XObject /Subtype /Image /Width %d /Height %d /BitsPerComponent 8 /ColorSpace /%s ",
                page->width, page->height, colours);
}

static enum fathom_status add_jpeg(struct fathom_writer *w, struct pdf_file *f, size_t number,
                                   const struct fathom_page *page, struct fathom_err *err)
{
    struct jpeg_header h;
    read_header(page->jpeg, page->jpeg_bytes, &h);
    begin_picture(w, f, number, page,
                  h.n_components == 1   ? "DeviceGray"
                  : h.n_components == 3 ? "DeviceRGB"
                                        : "DeviceCMYK");
    if (h.n_components == 4 && h.adobe)
        strbuf_adds(&w->out, "/Decode [1 0 1 0 1 0 1 0] ");
    strbuf_addf(&w->out, "/Filter /DCTDecode /Length %zu >>\nstream\n", page->jpeg_bytes);
    enum fathom_status status = writer_flush(w, err);
    if (!status && !w->write(w->user, (const char *)page->jpeg, page->jpeg_bytes))
        status = fail(err, FATHOM_EIO, "the output cannot be written");
    w->n_sent += page->jpeg_bytes;
    strbuf_adds(&w->out, "\nendstream\n");
    pdf_end_object(w);
    return status;
}

static bool send(void *user, const char *bytes, size_t n)
{
    struct fathom_writer *w = user;
    w->n_sent += n;
    return w->write(w->user, bytes, n);
}

enum fathom_status pdf_add_picture(struct fathom_writer *w, struct pdf_file *f, size_t number,
                                   const struct fathom_page *page, struct fathom_err *err)
{
    if (pdf_takes_jpeg(page))
        return add_jpeg(w, f, number, page, err);
    bool grey = rgb_is_grey(page->rgb, page->width, page->height);
    size_t length = pdf_new_object(f);
    if (!length)
        return fail_nomem(err, sizeof *f->offsets, "an object");
    begin_picture(w, f, number, page, grey ? "DeviceGray" : "DeviceRGB");
    strbuf_addf(&w->out,
                "/Filter /FlateDecode /DecodeParms << /Predictor 15 /Colors %d /Columns %d >> /Length %zu 0 R >>\n"
                "stream\n",
                grey ? 1 : 3, page->width, length);
    enum fathom_status status = writer_flush(w, err);
    uint64_t start = w->n_sent;
    if (!status)
        status = png_rows_write(page->rgb, page->width, page->height, grey, send, w, err);
    uint64_t n = w->n_sent - start;
    strbuf_adds(&w->out, "\nendstream\n");
    pdf_end_object(w);
    pdf_begin_object(w, f, length);
    strbuf_addf(&w->out, "%llu\n", (unsigned long long)n);
    pdf_end_object(w);
    return status;
}
