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
    case FATHOM_EUNSUPPORTED:
    case FATHOM_EPASSWORD: return r->message[0] && memchr(r->message, 0, sizeof r->message);
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
    int came = -1;
    if (fd)
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
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof came))
        memcpy(&came, CMSG_DATA(c), sizeof came);
    /* There is room for one descriptor: the system closes any others and says that it did. */
    if ((size_t)got == n && !(packet.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && (fd || came < 0)) {
        if (fd)
            *fd = came;
        return RECEIVED;
    }
    if (came >= 0)
        close(came);
    return RECEIVED_OTHER;
}

static size_t part_of(size_t left) { return left < PROTOCOL_PART ? left : PROTOCOL_PART; }

bool protocol_send_bytes(int sock, const void *bytes, size_t n)
{
    for (size_t done = 0; done < n; done += part_of(n - done))
        if (!protocol_send(sock, (const char *)bytes + done, part_of(n - done), -1))
            return false;
    return true;
}

enum receipt protocol_receive_bytes(int sock, void *bytes, size_t n, double deadline_ms)
{
    enum receipt receipt = RECEIVED;
    for (size_t done = 0; done < n && receipt == RECEIVED; done += part_of(n - done))
        receipt = protocol_receive(sock, (char *)bytes + done, part_of(n - done), NULL, deadline_ms);
    return receipt;
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

void clean_text_layer(char *text, size_t n) { clean_text(text, n, true); }

enum fathom_status reply_make_room(const struct reply *reply, struct document_page *out, struct fathom_err *err)
{
    struct image_limits limits = {
        .max_pixels = (size_t)reply->width * reply->height,
        .max_side = (int)(reply->width > reply->height ? reply->width : reply->height),
    };
    enum fathom_status status;

    *out = (struct document_page){.width_pt = reply->width_pt, .height_pt = reply->height_pt};
    memcpy(out->to_document, reply->to_document, sizeof out->to_document);
    status = image_alloc(&out->image, reply->width, reply->height, &limits, err);
    if (!status && reply->has_text && !(out->text_layer = malloc((size_t)reply->text_bytes + 1))) {
        status = fail_nomem(err, (size_t)reply->text_bytes, "the text layer");
        document_page_release(out);
    }
    return status;
}
