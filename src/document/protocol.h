/* What the library and the helper process say to each other. Each message is one packet of a socket pair with one of the
 * structs below, in the machine's own layout: both ends come from one build, and `version` tells when they do not.
 *
 *     library                                   helper
 *     OPEN, with the file's descriptor   ->
 *                                        <-     status, number of pages
 *     PAGE number                        ->
 *                                        <-     status, sizes; when that is well, in packets of PROTOCOL_PART bytes
 *                                               the pixels, then likewise the text layer
 *
 * Neither side trusts the other: the helper reads a stranger's bytes and may have been taken over by them, so what it
 * says is checked like a file. A process serves one document at a time; the next OPEN closes the one before. */
#ifndef FATHOM_DOCUMENT_PROTOCOL_H
#define FATHOM_DOCUMENT_PROTOCOL_H

#include <sys/types.h>

#include "document/document.h"

#define PROTOCOL_VERSION 1
#define PROTOCOL_FD 3           /* the helper's end of the socket pair      */
#define PROTOCOL_MAX_TIME 86400 /* seconds that a request may be allowed    */
#define PROTOCOL_MAX_PAGES 1000000
#define PROTOCOL_PART ((size_t)128 << 10)    /* a socket takes packets of up to 200 KiB from anybody */
#define PROTOCOL_MAX_TEXT ((size_t)64 << 20) /* bytes of a page's text layer */

enum request_kind { REQUEST_OPEN = 1, REQUEST_PAGE = 2 };

struct request {
    uint32_t version, kind;
    uint32_t time_s; /* that the library waits; a little later the helper ends by itself */
    /* OPEN */
    uint32_t alpha, ignore_icc, text_layer;
    double dpi;
    uint64_t max_file_bytes, max_pixels, max_side, max_work_bytes;
    uint32_t has_password;
    char password[256];
    /* PAGE */
    uint64_t number;
};

struct reply {
    uint32_t version, status;
    uint64_t n_pages; /* OPEN */
    /* PAGE */
    uint32_t width, height, plain_jpeg, has_text;
    uint64_t text_bytes;
    double width_pt, height_pt, to_document[6];
    char message[1024]; /* when status is not FATHOM_OK */
};

/* Every field of the message is in its range, and the strings end. */
bool request_is_sane(const struct request *request);
bool reply_is_sane(const struct reply *reply, enum request_kind kind, const struct image_limits *limits);

/* Sends n bytes as one packet, with a descriptor unless fd is -1. Never raises SIGPIPE; false with errno. */
bool protocol_send(int sock, const void *message, size_t n, int fd);

/* Waits until deadline_ms (clock_ms(); INFINITY: for ever) for one packet, which must have n bytes. *fd is a descriptor
 * that came along, the caller's to close, or -1; without fd there may be none. */
enum receipt { RECEIVED, RECEIVED_OTHER, RECEIVED_NONE, RECEIVED_END };
enum receipt protocol_receive(int sock, void *message, size_t n, int *fd, double deadline_ms);

/* Many bytes, in packets. */
bool protocol_send_bytes(int sock, const void *bytes, size_t n);
enum receipt protocol_receive_bytes(int sock, void *bytes, size_t n, double deadline_ms);

/* Room for what a sane reply says will come: *out is the caller's to release. */
enum fathom_status reply_make_room(const struct reply *reply, struct document_page *out, struct fathom_err *err);

/* Makes a text layer (n bytes, and room for a final NUL) valid UTF-8 without control characters. */
void clean_text_layer(char *text, size_t n);

/* Fails with what a helper says went wrong, characters that are not text replaced. */
enum fathom_status reply_fail(const struct reply *reply, struct fathom_err *err);

#endif
