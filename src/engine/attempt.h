/* One attempt at a page: pixels -> views -> vision tokens, prompt -> prefill -> tokens -> text. */
#ifndef FATHOM_ENGINE_ATTEMPT_H
#define FATHOM_ENGINE_ATTEMPT_H

#include "engine/generate.h"

/* What every step of reading needs; all borrowed. */
struct reader {
    struct fathom_context *ctx;
    const struct fathom_read_options *options;
    const struct fathom_callbacks *callbacks; /* may be NULL */
};

/* How an attempt ended. stats.decode_image_ms and .mapped_bytes are the page's and not touched. */
struct attempt {
    struct generation generation;
    struct fathom_stats stats;
};

/* Reads rgb [height, width, 3]. A cancelled attempt (FATHOM_ECANCELLED) keeps the text so far. */
enum fathom_status attempt_run(struct attempt *out, const struct reader *reader, const uint8_t *rgb, int width,
                               int height, struct fathom_err *err);
void attempt_release(struct attempt *a);

#endif
