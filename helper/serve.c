#include "helper/serve.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "document/protocol.h"
#include "helper/sandbox.h"
#include "helper/source.h"

#define GRACE_S 5 /* the library's own clock goes first, and says what happened */

static bool write_all(int fd, const void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t written = write(fd, (const char *)bytes + done, n - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        done += (size_t)written;
    }
    return true;
}

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

/* The page in a memfd that is the caller's to close. */
static enum fathom_status deliver(const struct source_page *source, struct reply *reply, int *memfd,
                                  struct fathom_err *err)
{
    const struct document_page *page = &source->page;
    size_t n_text = page->text_layer ? strlen(page->text_layer) : 0;
    n_text = n_text < PROTOCOL_MAX_TEXT ? n_text : PROTOCOL_MAX_TEXT;
    *memfd = memfd_create("fathom-page", MFD_CLOEXEC);
    if (*memfd < 0)
        return fail(err, FATHOM_EIO, "cannot make a file in memory: %s", strerror(errno));
    if (!write_all(*memfd, page->image.rgb, (size_t)page->image.width * (size_t)page->image.height * 3) ||
        !write_all(*memfd, page->text_layer, n_text)) {
        close(*memfd);
        *memfd = -1;
        return fail(err, FATHOM_ENOMEM, "no memory to hand the page over: %s", strerror(errno));
    }
    reply->width = (uint32_t)page->image.width;
    reply->height = (uint32_t)page->image.height;
    reply->plain_jpeg = source->plain_jpeg;
    reply->has_text = page->text_layer != NULL;
    reply->text_bytes = n_text;
    reply->width_pt = page->width_pt;
    reply->height_pt = page->height_pt;
    memcpy(reply->to_document, page->to_document, sizeof reply->to_document);
    return FATHOM_OK;
}

static enum fathom_status read_page(struct source *source, size_t number, struct reply *reply, int *memfd,
                                    struct fathom_err *err)
{
    struct source_page page;
    enum fathom_status status;
    if (!source)
        return fail(err, FATHOM_EINVAL, "no file is open");
    if ((status = source_page(source, number, &page, err)))
        return status;
    status = deliver(&page, reply, memfd, err);
    source_page_release(&page);
    return status;
}

void serve(int sock)
{
    struct source *source = NULL;
    struct request request;
    int fd;
    while (protocol_receive(sock, &request, sizeof request, &fd, INFINITY) == RECEIVED) {
        struct reply reply = {.version = PROTOCOL_VERSION};
        struct fathom_err err = {0};
        int memfd = -1;
        if (!request_is_sane(&request) || (fd >= 0) != (request.kind == REQUEST_OPEN))
            break;
        sandbox_allow_time(request.time_s + GRACE_S);
        reply.status = request.kind == REQUEST_OPEN ? open_source(&source, &request, fd, &reply, &err)
                                                    : read_page(source, request.number, &reply, &memfd, &err);
        sandbox_allow_time(0);
        explicit_bzero(&request, sizeof request);
        memcpy(reply.message, err.message, sizeof reply.message);
        bool sent = protocol_send(sock, &reply, sizeof reply, memfd);
        if (memfd >= 0)
            close(memfd);
        if (!sent)
            break;
    }
    source_close(source);
}
