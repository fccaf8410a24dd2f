/* What the two sides believe of each other: bytes as a request, as a reply, and as the packets behind a reply. A reply that
 * passes for sane must be safe to act on. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "document/protocol.h"

static const struct image_limits limits = {.max_pixels = 1 << 12, .max_side = 1 << 10};

static void take_page(const struct reply *reply, const uint8_t *rest, size_t n)
{
    struct document_page page;
    struct fathom_err err;
    int pair[2];
    if (reply->text_bytes > 1 << 16 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
        return;
    /* all the parts, or as many as the bytes give: then the socket closes */
    for (size_t at = 0;
         at < n && send(pair[1], rest + at, n - at < 4096 ? n - at : 4096, MSG_NOSIGNAL | MSG_DONTWAIT) > 0; at += 4096)
        continue;
    close(pair[1]);
    if (reply_make_room(reply, &page, &err) == FATHOM_OK) {
        size_t bytes = (size_t)page.image.width * (size_t)page.image.height * 3;
        protocol_receive_bytes(pair[0], page.image.rgb, bytes, clock_ms() + 1000);
        if (page.text_layer) {
            size_t n_text = (size_t)reply->text_bytes, take = n < n_text ? n : n_text;
            memset(page.text_layer, 'x', n_text);
            memcpy(page.text_layer, rest, take);
            clean_text_layer(page.text_layer, n_text);
            for (size_t i = 0, length = strlen(page.text_layer), step; i < length; i += step) {
                uint32_t code;
                if (!(step = utf8_decode(page.text_layer + i, length - i, &code)))
                    abort();
            }
        }
        document_page_release(&page);
    }
    close(pair[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct request request;
    struct reply reply;
    struct fathom_err err = {0};
    memset(&request, 0, sizeof request);
    memset(&reply, 0, sizeof reply);
    memcpy(&request, data, size < sizeof request ? size : sizeof request);
    memcpy(&reply, data, size < sizeof reply ? size : sizeof reply);
    if (request_is_sane(&request) && request.kind == REQUEST_OPEN &&
        !memchr(request.password, 0, sizeof request.password))
        abort();
    reply_is_sane(&reply, REQUEST_OPEN, &limits);
    if (!reply_is_sane(&reply, REQUEST_PAGE, &limits))
        return 0;
    if (reply.status != FATHOM_OK) {
        reply_fail(&reply, &err);
        if (err.status != (enum fathom_status)reply.status || !err.message[0])
            abort();
    } else if (size > sizeof reply)
        take_page(&reply, data + sizeof reply, size - sizeof reply);
    return 0;
}
