#include "document/protocol.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"

/* ---- ranges ------------------------------------------------------------------------------------------------ */

static bool is_in(double v, double least, double most) { return isfinite(v) && v >= least && v <= most; }

bool request_is_sane(const struct request *r)
{
    if (r->version != PROTOCOL_VERSION || r->time_s == 0 || r->time_s > PROTOCOL_MAX_TIME)
        return false;
    if (r->kind == REQUEST_PAGE)
        return r->number >= 1 && r->number <= PROTOCOL_MAX_PAGES;
    return r->kind == REQUEST_OPEN && r->alpha <= FATHOM_ALPHA_DROP && r->ignore_icc <= 1 && r->text_layer <= 1 &&
           r->has_password <= 1 && is_in(r->dpi, 1, 10000) && r->max_side <= INT32_MAX &&
           memchr(r->password, 0, sizeof r->password);
}

static bool page_is_sane(const struct reply *r, const struct image_limits *limits)
{
    const double most = 1e9; /* points and what stands in a matrix: far beyond any page */
    bool ok = r->width >= 1 && r->height >= 1 && limits->max_side > 0 && r->width <= (unsigned)limits->max_side &&
              r->height <= (unsigned)limits->max_side && (uint64_t)r->width * r->height <= limits->max_pixels &&
              (uint64_t)r->width * r->height <= SIZE_MAX / 8 && r->plain_jpeg <= 1 && r->has_text <= 1 &&
              r->text_bytes <= PROTOCOL_MAX_TEXT && is_in(r->width_pt, 1e-9, most) && is_in(r->height_pt, 1e-9, most);
    for (int i = 0; i < 6; i++)
        ok = ok && is_in(r->to_document[i], -most, most);
    return ok;
}

bool reply_is_sane(const struct reply *r, enum request_kind kind, const struct image_limits *limits)
{
    if (r->version != PROTOCOL_VERSION)
        return false;
    switch ((enum fathom_status)r->status) {
    case FATHOM_OK: return kind == REQUEST_OPEN ? r->n_pages <= PROTOCOL_MAX_PAGES : page_is_sane(r, limits);
    case FATHOM_EINVAL:
    case FATHOM_ENOMEM:
    case FATHOM_EIO:
    case FATHOM_EFORMAT:
    case FATHOM_ELIMIT:
    case FATHOM_EUNSUPPORTED: return r->message[0] && memchr(r->message, 0, sizeof r->message);
    default: return false;
    }
}

/* ---- packets ----------------------------------------------------------------------------------------------- */

union descriptor_space {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

bool protocol_send(int sock, const void *message, size_t n, int fd)
{
    union descriptor_space space = {{0}};
    struct iovec part = {(void *)message, n};
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        packet.msg_control = space.bytes;
        packet.msg_controllen = sizeof space.bytes;
        struct cmsghdr *c = CMSG_FIRSTHDR(&packet);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    ssize_t sent;
    do
        sent = sendmsg(sock, &packet, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)n;
}

/* False: the time is over. */
static bool wait_readable(int sock, double deadline_ms)
{
    for (;;) {
        double left = deadline_ms - clock_ms();
        struct pollfd p = {.fd = sock, .events = POLLIN};
        int n = poll(&p, 1, left > 1e6 ? 1000000 : left > 0 ? (int)ceil(left) : 0);
        if (n > 0)
            return true;
        if (n == 0 && left <= 0)
            return false;
        if (n < 0 && errno != EINTR)
            return true; /* the read will say what is wrong */
    }
}

enum receipt protocol_receive(int sock, void *message, size_t n, int *fd, double deadline_ms)
{
    union descriptor_space space;
    struct iovec part = {message, n};
    struct msghdr packet = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = space.bytes, .msg_controllen = sizeof space.bytes};
    *fd = -1;
    if (!wait_readable(sock, deadline_ms))
        return RECEIVED_NONE;
    ssize_t got;
    do
        got = recvmsg(sock, &packet, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return RECEIVED_NONE;
    if (got <= 0)
        return RECEIVED_END;
    struct cmsghdr *c = CMSG_FIRSTHDR(&packet);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof *fd))
        memcpy(fd, CMSG_DATA(c), sizeof *fd);
    /* There is room for one descriptor: the system closes any others and says that it did. */
    if ((size_t)got == n && !(packet.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
        return RECEIVED;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return RECEIVED_OTHER;
}

/* ---- what a reply carries ---------------------------------------------------------------------------------- */

/* Text, whatever the bytes were. replacement stands for what is no character or a control character. */
static size_t clean_text(char *text, size_t n, bool lines)
{
    size_t out = 0;
    for (size_t i = 0; i < n;) {
        uint32_t code;
        size_t length = utf8_decode(text + i, n - i, &code);
        bool control = length == 1 && (code < 0x20 || code == 0x7f) && !(lines && (code == '\n' || code == '\t'));
        if (length == 0 || control) {
            if (!(lines && control && (code == '\r' || code == '\f')))
                text[out++] = '?';
            i++;
            continue;
        }
        memmove(text + out, text + i, length);
        out += length;
        i += length;
    }
    text[out] = 0;
    return out;
}

enum fathom_status reply_fail(const struct reply *reply, struct fathom_err *err)
{
    char message[sizeof reply->message];
    memcpy(message, reply->message, sizeof message);
    message[sizeof message - 1] = 0;
    clean_text(message, strlen(message), false);
    return fail(err, (enum fathom_status)reply->status, "%s", message);
}

/* Reading, unlike mapping, is safe from a file that is shorter than it was said to be. */
static bool read_exactly(int fd, void *out, size_t n, size_t at)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(fd, (char *)out + done, n - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

enum fathom_status reply_take(const struct reply *reply, int fd, struct document_page *out, struct fathom_err *err)
{
    size_t n_pixels = (size_t)reply->width * reply->height, text_bytes = (size_t)reply->text_bytes;
    struct image_limits limits = {.max_pixels = n_pixels,
                                  .max_side = (int)(reply->width > reply->height ? reply->width : reply->height)};
    enum fathom_status status;

    *out = (struct document_page){.width_pt = reply->width_pt, .height_pt = reply->height_pt};
    memcpy(out->to_document, reply->to_document, sizeof out->to_document);
    if ((status = image_alloc(&out->image, reply->width, reply->height, &limits, err)))
        return status;
    if (reply->has_text && !(out->text_layer = malloc(text_bytes + 1)))
        status = fail_nomem(err, text_bytes, "the text layer");
    else if (!read_exactly(fd, out->image.rgb, 3 * n_pixels, 0) ||
             (reply->has_text && !read_exactly(fd, out->text_layer, text_bytes, 3 * n_pixels)))
        status = fail(err, FATHOM_EIO, "the decoder delivers less than it says");
    else if (reply->has_text)
        clean_text(out->text_layer, text_bytes, true);
    if (status)
        document_page_release(out);
    return status;
}
