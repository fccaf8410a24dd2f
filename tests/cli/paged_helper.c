/* A decoder for tests of the program with documents of many pages. Behind the JPEG signature of the file that it is asked
 * to open stand a word and a number: "pages 60" has 60 pages of a few pixels, each different; "locked 60" is the same
 * behind the password "sesame"; "broken 60" has a page in the middle that cannot be decoded. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "document/protocol.h"

enum { SIDE = 24 };

static char word[16];
static size_t n_pages;

static void read_words(int fd)
{
    char text[64];
    ssize_t n = pread(fd, text, sizeof text - 1, 3);
    text[n > 0 ? n : 0] = '\0';
    if (sscanf(text, "%15s %zu", word, &n_pages) != 2)
        n_pages = 0;
}

static void answer_open(const struct request *request)
{
    struct reply reply = {.version = PROTOCOL_VERSION, .n_pages = n_pages};
    if (n_pages == 0) {
        reply.status = FATHOM_EFORMAT;
        strcpy(reply.message, "not one of the test's documents");
    } else if (strcmp(word, "locked") == 0 && strcmp(request->password, "sesame") != 0) {
        reply.status = FATHOM_EPASSWORD;
        strcpy(reply.message,
               request->has_password ? "the password is wrong" : "it is encrypted: a password is needed");
    }
    protocol_send(PROTOCOL_FD, &reply, sizeof reply, -1);
}

static void answer_page(uint64_t number)
{
    uint8_t rgb[SIDE * SIDE * 3];
    struct reply reply = {
        .version = PROTOCOL_VERSION,
        .width = SIDE,
        .height = SIDE,
        .width_pt = SIDE,
        .height_pt = SIDE,
        .to_document = {1, 0, 0, 1, 0, 0},
    };
    if (strcmp(word, "broken") == 0 && number == n_pages / 2) {
        reply.status = FATHOM_EFORMAT;
        strcpy(reply.message, "it is broken");
    }
    for (size_t i = 0; i < sizeof rgb; i++)
        rgb[i] = (uint8_t)(i * number);
    protocol_send(PROTOCOL_FD, &reply, sizeof reply, -1);
    if (!reply.status)
        protocol_send_bytes(PROTOCOL_FD, rgb, sizeof rgb);
}

int main(void)
{
    struct request request;
    int fd;
    while (protocol_receive(PROTOCOL_FD, &request, sizeof request, &fd, INFINITY) == RECEIVED) {
        if (request.kind == REQUEST_OPEN) {
            read_words(fd);
            answer_open(&request);
            close(fd);
        } else {
            answer_page(request.number);
        }
    }
    return 0;
}
