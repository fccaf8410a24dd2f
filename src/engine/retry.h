/* Reading one page: an attempt, and others when its text repeats itself or the context was too small for it. */
#ifndef FATHOM_ENGINE_RETRY_H
#define FATHOM_ENGINE_RETRY_H

#include "engine/attempt.h"

#define MAX_ATTEMPTS 5

struct reading {
    struct fathom_attempt attempts[MAX_ATTEMPTS];
    size_t n_attempts;
    struct outcome best; /* of these; owned */
};

/* Reads rgb [height, width, 3]. First as the options say. Then, unless they say no_retry, as long as no attempt ended of
 * itself:
 *
 *   after a loop      the same with a no-repeat guard that sees further back; the page in other views;
 *                     its text without layout, when the prompt is the usual one
 *   also when the context was full   the upper and the lower half apart, their boxes put into the whole page's
 *                                    coordinates, when the prompt asks for the text of a page
 *
 * The best one counts: one that ended before one that was cut off, that before one that looped; among equals the one
 * with more text. A later attempt that fails is no error. FATHOM_ECANCELLED leaves the best text so far. */
enum fathom_status reading_run(struct reading *out, const struct reader *reader, const uint8_t *rgb, int width,
                               int height, struct fathom_err *err);
void reading_release(struct reading *r);

#endif
