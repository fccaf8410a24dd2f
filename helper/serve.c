#include "helper/serve.h"

#include <math.h>
#include <string.h>

#include "document/protocol.h"
#include "helper/sandbox.h"
#include "helper/source.h"

#define GRACE_S 5 /* the library's own clock goes first, and says what happened */

static enum fathom_status open_source(struct source **source, const struct request *r, int fd, struct reply *reply,
                                      struct fathom_err *err)
{
    struct document_options options = {
        .alpha = (enum fathom_alpha)r->alpha,
        .ignore_icc = r->ignore_icc,
        .text_layer = r->text_layer,
        .dpi = r->dpi,
        .password = r->has_password ? r->password : NULL,
        .limits = {r->max_file_bytes, r->max_pixels, (int)r->max_side, r->max_work_bytes},
    };
    source_close(*source);
    *source = NULL;
    enum fathom_status status = source_open(source, fd, &options, err);
    if (status)
        return status;
    reply->n_pages = source_n_pages(*source);
    return source_needs_files(*source) ? FATHOM_OK : sandbox_close_files(err);
}

static void describe(const struct source_page *source, struct reply *reply)
{
    const struct document_page *page = &source->page;
    size_t n_text = page->text_layer ? strlen(page->text_layer) : 0;
    reply->width = (uint32_t)page->image.width;
    reply->height = (uint32_t)page->image.height;
    reply->plain_jpeg = source->plain_jpeg;
    reply->has_text = page->text_layer != NULL;
    reply->text_bytes = n_text < PROTOCOL_MAX_TEXT ? n_text : PROTOCOL_MAX_TEXT;
    reply->width_pt = page->width_pt;
    reply->height_pt = page->height_pt;
    memcpy(reply->to_document, page->to_document, sizeof reply->to_document);
}

static enum fathom_status read_page(struct source *source, size_t number, struct source_page *out, struct reply *reply,
                                    struct fathom_err *err)
{
    enum fathom_status status;
    if (!source)
        return fail(err, FATHOM_EINVAL, "no file is open");
    if ((status = source_page(source, number, out, err)))
        return status;
    describe(out, reply);
    return FATHOM_OK;
}

static bool send_reply(int sock, const struct reply *reply, const struct document_page *page)
{
    size_t n_pixel_bytes = (size_t)page->image.width * (size_t)page->image.height * 3;
    return protocol_send(sock, reply, sizeof *reply, -1) && protocol_send_bytes(sock, page->image.rgb, n_pixel_bytes) &&
           protocol_send_bytes(sock, page->text_layer, reply->text_bytes);
}

void serve(int sock)
{
    struct source *source = NULL;
    struct request request;
    bool sent = true;
    int fd;
    while (sent && protocol_receive(sock, &request, sizeof request, &fd, INFINITY) == RECEIVED) {
        struct reply reply = {.version = PROTOCOL_VERSION};
        struct source_page page = {0};
        struct fathom_err err = {0};
        if (!request_is_sane(&request) || (fd >= 0) != (request.kind == REQUEST_OPEN))
            break;
        sandbox_allow_time(request.time_s + GRACE_S);
        reply.status = request.kind == REQUEST_OPEN ? open_source(&source, &request, fd, &reply, &err)
                                                    : read_page(source, request.number, &page, &reply, &err);
        explicit_bzero(&request, sizeof request);
        memcpy(reply.message, err.message, sizeof reply.message);
        sent = send_reply(sock, &reply, &page.page);
        sandbox_allow_time(0);
        source_page_release(&page);
    }
    source_close(source);
}
