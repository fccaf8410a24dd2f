#include "document/document.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document/decoder.h"
#include "document/format.h"
#include "document/input.h"

/* Libraries keep what they have seen; a process that ends gives it back. */
#define PAGES_PER_PROCESS 200

struct document {
    struct decoder *decoder; /* borrowed; has our file open while its owner is this document */
    struct input input;
    enum format format;
    struct request open; /* what the decoder is told to open the file */
    struct image_limits limits;
    size_t n_pages;
};

void document_page_release(struct document_page *page)
{
    image_free(&page->image);
    free(page->text_layer);
    free(page->jpeg);
    *page = (struct document_page){0};
}

size_t document_n_pages(const struct document *d) { return d->n_pages; }

void document_close(struct document *d)
{
    if (!d)
        return;
    if (d->decoder && d->decoder->owner == d)
        decoder_stop(d->decoder); /* the next file must not meet what this one may have done to the process */
    input_close(&d->input);
    explicit_bzero(d->open.password, sizeof d->open.password);
    free(d);
}

/* ---- opening ----------------------------------------------------------------------------------------------- */

static enum fathom_status make_request(struct document *d, const struct document_options *o, struct fathom_err *err)
{
    struct request *r = &d->open;
    *r = (struct request){
        .version = PROTOCOL_VERSION,
        .kind = REQUEST_OPEN,
        .time_s = decoder_time_s(),
        .alpha = o->alpha,
        .ignore_icc = o->ignore_icc,
        .text_layer = o->text_layer,
        .dpi = o->dpi == 0 ? 144 : o->dpi,
        .max_file_bytes = o->limits.max_file_bytes,
        .max_pixels = o->limits.max_pixels,
        .max_side = o->limits.max_side > 0 ? (uint64_t)o->limits.max_side : 0,
        .max_work_bytes = o->limits.max_work_bytes,
        .has_password = o->password != NULL,
    };
    if (!(r->dpi >= 1 && r->dpi <= 10000))
        return fail(err, FATHOM_EINVAL, "%g dpi is not a resolution to draw pages at: 1 to 10000 is", o->dpi);
    if (o->password && strlen(o->password) >= sizeof r->password)
        return fail(err, FATHOM_EINVAL, "the password is longer than %zu bytes", sizeof r->password - 1);
    if (o->password)
        strcpy(r->password, o->password);
    return FATHOM_OK;
}

/* Has the decoder open our file, in a new process unless it has it open already. */
static enum fathom_status open_in_decoder(struct document *d, const char *about, struct fathom_err *err)
{
    struct decoder *decoder = d->decoder;
    struct reply reply;
    enum fathom_status status;

    if (decoder->pid && decoder->owner == d && decoder->n_pages < PAGES_PER_PROCESS)
        return FATHOM_OK;
    decoder_stop(decoder);
    if ((status = decoder_start(decoder, err)))
        return status;
    if ((status = decoder_ask(decoder, &d->open, d->input.fd, &d->limits, about, &reply, err)))
        return status;
    if (reply.status)
        return reply_fail(&reply, err);
    decoder->owner = d;
    d->n_pages = reply.n_pages;
    return FATHOM_OK;
}

static enum fathom_status open_input(struct document *d, const char *path, const struct document_options *o,
                                     struct fathom_err *err)
{
    uint8_t head[FORMAT_HEAD_BYTES];
    size_t n;
    enum fathom_status status;
    if ((status = input_open(&d->input, path, o->limits.max_file_bytes, err)))
        return status;
    if (!input_read(&d->input, head, sizeof head, 0, &n))
        return fail(err, FATHOM_EIO, "cannot read: %s", strerror(errno));
    d->format = format_of(head, n);
    if (d->format == FORMAT_UNKNOWN || d->format == FORMAT_FOREIGN)
        return format_fail(head, n, err);
    if (d->format == FORMAT_PNM) {
        d->n_pages = 1;
        return FATHOM_OK;
    }
    if ((status = open_in_decoder(d, "the file", err)))
        return status;
    return d->n_pages ? FATHOM_OK : fail(err, FATHOM_EFORMAT, "a document without pages");
}

enum fathom_status document_open(struct document **out, struct decoder *decoder, const char *path,
                                 const struct document_options *options, struct fathom_err *err)
{
    struct document *d = calloc(1, sizeof *d);
    enum fathom_status status;
    *out = NULL;
    if (!d)
        return fail_nomem(err, sizeof *d, "the document");
    d->decoder = decoder;
    d->input.fd = -1;
    d->limits = options->limits;
    if (!(status = make_request(d, options, err)) && (status = open_input(d, path, options, err)))
        fail_at(err, "'%s': ", path);
    if (status) {
        document_close(d);
        return status;
    }
    *out = d;
    return FATHOM_OK;
}

/* ---- pages ------------------------------------------------------------------------------------------------- */

static enum fathom_status read_pnm(struct document *d, struct document_page *out, struct fathom_err *err)
{
    uint8_t *bytes;
    size_t n;
    enum fathom_status status = input_read_all(&d->input, d->limits.max_file_bytes, &bytes, &n, err);
    if (status)
        return status;
    /* The file may have changed since its first bytes were looked at. */
    if (format_of(bytes, n) != FORMAT_PNM)
        status = format_fail(bytes, n, err);
    else
        status = pnm_decode(&out->image, bytes, n, (enum fathom_alpha)d->open.alpha, &d->limits, err);
    free(bytes);
    if (status)
        return status;
    out->width_pt = out->image.width;
    out->height_pt = out->image.height;
    memcpy(out->to_document, (double[6]){1, 0, 0, 1, 0, 0}, sizeof out->to_document);
    return FATHOM_OK;
}

static enum fathom_status ask_page(struct document *d, size_t number, struct document_page *out, struct fathom_err *err)
{
    struct request request = {
        .version = PROTOCOL_VERSION, .kind = REQUEST_PAGE, .time_s = d->open.time_s, .number = number};
    struct reply reply;
    enum fathom_status status;
    char about[32];

    snprintf(about, sizeof about, "page %zu", number);
    if ((status = open_in_decoder(d, about, err)))
        return status;
    if ((status = decoder_ask(d->decoder, &request, -1, &d->limits, about, &reply, err)))
        return status;
    d->decoder->n_pages++;
    if (reply.status)
        return reply_fail(&reply, err);
    status = decoder_take(d->decoder, &reply, request.time_s, about, out, err);
    if (!status && reply.plain_jpeg && d->format == FORMAT_JPEG &&
        (status = input_read_all(&d->input, d->limits.max_file_bytes, &out->jpeg, &out->jpeg_bytes, err)))
        document_page_release(out);
    return status;
}

enum fathom_status document_page(struct document *d, size_t number, struct document_page *out, struct fathom_err *err)
{
    *out = (struct document_page){0};
    if (number < 1 || number > d->n_pages)
        return fail(err, FATHOM_EINVAL, "there is no page %zu of %zu", number, d->n_pages);
    return d->format == FORMAT_PNM ? read_pnm(d, out, err) : ask_page(d, number, out, err);
}
