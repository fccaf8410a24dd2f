#include "helper/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "document/format.h"
#include "document/input.h"
#include "helper/decode.h"
#include "helper/pdf.h"
#include "helper/tiff.h"

struct source {
    struct document_options options;
    size_t n_pages;
    struct pdf *pdf; /* NULL: pictures */
    uint8_t *bytes;  /* of pictures, owned */
    size_t n_bytes;
    struct tiff_pages *tiff; /* NULL: a file of one picture */
};

void source_page_release(struct source_page *page)
{
    document_page_release(&page->page);
    *page = (struct source_page){0};
}

size_t source_n_pages(const struct source *s) { return s->n_pages; }

bool source_needs_files(const struct source *s) { return s->pdf; }

void source_close(struct source *s)
{
    if (!s)
        return;
    pdf_close(s->pdf);
    tiff_close(s->tiff);
    free(s->bytes);
    free(s);
}

/* ---- opening ----------------------------------------------------------------------------------------------- */

static struct codec_input picture_input(const struct source *s)
{
    return (struct codec_input){s->bytes, s->n_bytes, s->options.alpha, s->options.ignore_icc, &s->options.limits};
}

static enum fathom_status open_pdf(struct source *s, int fd, const struct document_options *options,
                                   struct fathom_err *err)
{
    enum fathom_status status = pdf_open(&s->pdf, fd, options, err);
    if (!status)
        s->n_pages = pdf_n_pages(s->pdf);
    return status;
}

/* Read, not mapped: a file that shrinks meanwhile must not become a SIGBUS. */
static enum fathom_status open_pictures(struct source *s, struct input *in, enum format format, struct fathom_err *err)
{
    enum fathom_status status = input_read_all(in, s->options.limits.max_file_bytes, &s->bytes, &s->n_bytes, err);
    s->n_pages = 1;
    if (status || format != FORMAT_TIFF)
        return status;
    const struct codec_input input = picture_input(s);
    if (!(status = tiff_open(&s->tiff, &input, err)))
        s->n_pages = tiff_n_pages(s->tiff);
    return status;
}

enum fathom_status source_open(struct source **out, int fd, const struct document_options *options,
                               struct fathom_err *err)
{
    struct source *s = calloc(1, sizeof *s);
    struct input in = {.fd = fd};
    struct stat st;
    uint8_t head[FORMAT_HEAD_BYTES];
    size_t n;
    enum fathom_status status;

    *out = NULL;
    if (!s) {
        input_close(&in);
        return fail_nomem(err, sizeof *s, "the file");
    }
    s->options = *options;
    s->options.password = NULL;
    if (fstat(fd, &st) || !input_read(&in, head, sizeof head, 0, &n)) {
        status = fail(err, FATHOM_EIO, "cannot read: %s", strerror(errno));
        input_close(&in);
    } else if (format_of(head, n) == FORMAT_PDF) {
        status = open_pdf(s, fd, options, err);
    } else {
        in.size = st.st_size > 0 ? (size_t)st.st_size : 0;
        status = open_pictures(s, &in, format_of(head, n), err);
        input_close(&in);
    }
    if (status) {
        source_close(s);
        return status;
    }
    *out = s;
    return FATHOM_OK;
}

/* ---- pages ------------------------------------------------------------------------------------------------- */

/* A picture's place in its document: points by its resolution, y down. */
static void place_picture(struct document_page *page, double dpi_x, double dpi_y)
{
    const double least = 1, most = 100000;
    bool stated = dpi_x >= least && dpi_x <= most && dpi_y >= least && dpi_y <= most;
    double a = 72 / (stated ? dpi_x : 72), d = 72 / (stated ? dpi_y : 72);
    page->width_pt = page->image.width * a;
    page->height_pt = page->image.height * d;
    memcpy(page->to_document, (double[6]){a, 0, 0, d, 0, 0}, sizeof page->to_document);
}

enum fathom_status source_page(struct source *s, size_t number, struct source_page *out, struct fathom_err *err)
{
    struct decoded picture;
    enum fathom_status status;

    *out = (struct source_page){0};
    if (number < 1 || number > s->n_pages)
        return fail(err, FATHOM_EINVAL, "there is no page %zu of %zu", number, s->n_pages);
    if (s->pdf)
        return pdf_page(s->pdf, number, &out->page, err);
    const struct codec_input in = picture_input(s);
    status = s->tiff ? tiff_page(s->tiff, number, &picture, err) : picture_decode(&picture, &in, err);
    if (status)
        return status;
    out->page.image = picture.image;
    out->plain_jpeg = picture.plain_jpeg;
    place_picture(&out->page, picture.dpi_x, picture.dpi_y);
    return FATHOM_OK;
}
