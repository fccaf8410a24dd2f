#include "helper/source.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "document/format.h"
#include "document/input.h"
#include "helper/decode.h"
#include "helper/sandbox.h"

struct source {
    struct input input;
    struct document_options options;
    size_t n_pages;
};

void source_page_release(struct source_page *page)
{
    document_page_release(&page->page);
    *page = (struct source_page){0};
}

size_t source_n_pages(const struct source *s) { return s->n_pages; }

bool source_needs_files(const struct source *s)
{
    (void)s;
    return false;
}

void source_close(struct source *s)
{
    if (!s)
        return;
    input_close(&s->input);
    free(s);
}

enum fathom_status source_open(struct source **out, int fd, const struct document_options *options,
                               struct fathom_err *err)
{
    struct source *s = calloc(1, sizeof *s);
    struct stat st;
    *out = NULL;
    if (!s || fstat(fd, &st)) {
        free(s);
        input_close(&(struct input){.fd = fd});
        return fail_nomem(err, sizeof *s, "the file");
    }
    s->input = (struct input){fd, st.st_size > 0 ? (size_t)st.st_size : 0};
    s->options = *options;
    s->options.password = NULL;
    s->n_pages = 1;
    *out = s;
    return FATHOM_OK;
}

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
    const struct document_options *o = &s->options;
    struct codec_input in = {.alpha = o->alpha, .ignore_icc = o->ignore_icc, .limits = &o->limits};
    struct decoded picture;
    uint8_t *bytes;
    enum fathom_status status;

    *out = (struct source_page){0};
    if (number < 1 || number > s->n_pages)
        return fail(err, FATHOM_EINVAL, "there is no page %zu of %zu", number, s->n_pages);
    if ((status = input_read_all(&s->input, o->limits.max_file_bytes, &bytes, &in.n, err)))
        return status;
    in.bytes = bytes;
    status = picture_decode(&picture, &in, err);
    free(bytes);
    if (status)
        return status;
    out->page.image = picture.image;
    out->plain_jpeg = picture.plain_jpeg;
    place_picture(&out->page, picture.dpi_x, picture.dpi_y);
    return FATHOM_OK;
}
