/* The helper process: found, started, asked, and ended. */
#ifndef FATHOM_DOCUMENT_DECODER_H
#define FATHOM_DOCUMENT_DECODER_H

#include "document/protocol.h"

struct decoder {
    pid_t pid;         /* 0: none runs                                              */
    int sock;          /* -1: none                                                  */
    const void *owner; /* whose document the process has open; NULL: nobody's       */
    size_t n_pages;    /* that this process has decoded                             */
};

/* The helper's path, the caller's to free: $FATHOM_HELPER, or beside the running program, or where the library was
 * installed to. Fails with FATHOM_EUNSUPPORTED when there is none. */
enum fathom_status helper_find(char **out, struct fathom_err *err);

/* Starts a process if none runs. */
enum fathom_status decoder_start(struct decoder *d, struct fathom_err *err);

/* Ends the process, if any, and waits for it. */
void decoder_stop(struct decoder *d);

/* Sends a request, with fd unless it is -1, and waits for the reply, which is sane then. `about` ("page 3") is named when
 * the process dies, hangs or talks nonsense over it; then it runs no longer. */
enum fathom_status decoder_ask(struct decoder *d, const struct request *request, int fd,
                               const struct image_limits *limits, const char *about, struct reply *reply,
                               struct fathom_err *err);

/* Takes the page that a good reply has announced. */
enum fathom_status decoder_take(struct decoder *d, const struct reply *reply, uint32_t time_s, const char *about,
                                struct document_page *out, struct fathom_err *err);

/* Seconds for one request: $FATHOM_HELPER_TIMEOUT, or 120. */
uint32_t decoder_time_s(void);

#endif
