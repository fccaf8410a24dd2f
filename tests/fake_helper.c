/* A helper process that misbehaves. The word behind the JPEG signature of the file that it is asked to open says how. */
#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "document/protocol.h"

static char word[32];

static bool is(const char *what) { return strcmp(word, what) == 0; }

/* A sanitizer would make another end of it. */
static void die_of(int number)
{
    signal(number, SIG_DFL);
    raise(number);
}

static void read_word(int fd)
{
    ssize_t n = pread(fd, word, sizeof word - 1, 3);
    word[n > 0 ? n : 0] = 0;
}

static void send_page(size_t n_pixel_bytes, size_t n_text)
{
    protocol_send_bytes(PROTOCOL_FD, "abcdefghijkl", n_pixel_bytes);
    protocol_send_bytes(PROTOCOL_FD, "\xff\xfe\001text\n\xe2\x82\xac", n_text);
}

static void answer_open(void)
{
    struct reply reply = {.version = PROTOCOL_VERSION, .n_pages = 3};
    if (is("open-dies"))
        die_of(SIGSEGV);
    if (is("other-version"))
        reply.version++;
    if (is("many-pages"))
        reply.n_pages = UINT64_MAX;
    if (is("no-pages"))
        reply.n_pages = 0;
    protocol_send(PROTOCOL_FD, &reply, sizeof reply, is("open-with-file") ? STDIN_FILENO : -1);
}

static void fill(struct reply *r)
{
    if (is("wide"))
        r->width = 1u << 31;
    if (is("high"))
        r->height = 65501;
    if (is("large"))
        r->width = r->height = 65500;
    if (is("empty"))
        r->width = 0;
    if (is("nan"))
        r->to_document[3] = NAN;
    if (is("infinite"))
        r->width_pt = INFINITY;
    if (is("long-text")) {
        r->has_text = 1;
        r->text_bytes = UINT64_MAX;
    }
    if (is("short-text")) {
        r->has_text = 1;
        r->text_bytes = 1000;
    }
    if (is("text")) {
        r->has_text = 1;
        r->text_bytes = 11;
    }
    if (is("odd-status"))
        r->status = 77;
    if (is("cancelled"))
        r->status = FATHOM_ECANCELLED;
    if (is("mute"))
        r->status = FATHOM_EFORMAT;
    if (is("endless-message")) {
        r->status = FATHOM_EFORMAT;
        memset(r->message, 'x', sizeof r->message);
    }
    if (is("dirty-message")) {
        r->status = FATHOM_EFORMAT;
        strcpy(r->message, "\033[2Jcaf\xc3\xa9 \xff%s%n");
    }
}

/* Page 2 is where it goes wrong; the others are 2 x 2 pixels. */
static void answer_page(uint64_t number)
{
    struct reply reply = {
        .version = PROTOCOL_VERSION,
        .width = 2,
        .height = 2,
        .width_pt = 2,
        .height_pt = 2,
        .to_document = {1, 0, 0, 1, 0, 0},
    };
    size_t n_pixel_bytes = 12, n_text = 0;
    if (number == 2) {
        if (is("dies"))
            die_of(SIGSEGV);
        if (is("ends"))
            _exit(3);
        if (is("closes")) {
            close(PROTOCOL_FD);
            pause();
        }
        if (is("hangs"))
            pause();
        if (is("short-packet")) {
            protocol_send(PROTOCOL_FD, &reply, 10, -1);
            return;
        }
        if (is("long-packet")) {
            char packet[2 * sizeof reply] = {0};
            memcpy(packet, &reply, sizeof reply);
            protocol_send(PROTOCOL_FD, packet, sizeof packet, -1);
            return;
        }
        if (is("with-file")) {
            protocol_send(PROTOCOL_FD, &reply, sizeof reply, STDIN_FILENO);
            return;
        }
        if (is("no-pixels"))
            n_pixel_bytes = 0;
        if (is("few-pixels"))
            n_pixel_bytes = 11;
        if (is("dies-late")) {
            protocol_send(PROTOCOL_FD, &reply, sizeof reply, -1);
            die_of(SIGBUS);
        }
        if (is("text") || is("short-text"))
            n_text = 11;
        if (is("jpeg"))
            reply.plain_jpeg = 1;
        fill(&reply);
    }
    protocol_send(PROTOCOL_FD, &reply, sizeof reply, -1);
    if (!reply.status)
        send_page(n_pixel_bytes, n_text);
}

int main(void)
{
    struct request request;
    int fd;
    while (protocol_receive(PROTOCOL_FD, &request, sizeof request, &fd, INFINITY) == RECEIVED) {
        if (request.kind == REQUEST_OPEN) {
            read_word(fd);
            answer_open();
            close(fd);
        } else
            answer_page(request.number);
    }
    return 0;
}
