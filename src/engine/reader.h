/* What every step of reading a page needs. */
#ifndef FATHOM_ENGINE_READER_H
#define FATHOM_ENGINE_READER_H

#include "engine/context.h"

/* All borrowed. */
struct reader {
    struct fathom_context *ctx;
    const struct fathom_read_options *options;
    const struct fathom_callbacks *callbacks; /* may be NULL */
};

/* Tells on_stage. False: stop. */
static inline bool reader_stage(const struct reader *r, const char *stage, size_t done, size_t total)
{
    const struct fathom_callbacks *c = r->callbacks;
    return !c || !c->on_stage || c->on_stage(c->user, stage, done, total);
}

#endif
