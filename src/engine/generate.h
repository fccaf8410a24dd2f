/* The token loop: sample, guard, stop, stream. */
#ifndef FATHOM_ENGINE_GENERATE_H
#define FATHOM_ENGINE_GENERATE_H

#include "base/strbuf.h"
#include "engine/context.h"
#include "text/ngram_guard.h"

enum stop_reason { STOP_EOS, STOP_LIMIT, STOP_LOOP };

struct generate_options {
    size_t max_tokens;
    struct ngram_guard guard;
    float temperature, top_p;
    uint64_t seed;
    /* Whole UTF-8 characters as they come, and the number of tokens after each; false cancels. May be NULL. */
    bool (*on_text)(void *user, const char *text, size_t n);
    bool (*on_token)(void *user, size_t n_tok);
    void *user;
};

struct generation {
    struct strbuf text; /* owned; after a loop only the part before its second round */
    size_t n_tok;       /* generated, the end token not counted                      */
    enum stop_reason stop;
};

/* Continues from ctx->logits (context_append was called) until the end token, max_tokens, a full cache or a loop. */
enum fathom_status generate(struct fathom_context *ctx, const struct generate_options *options, struct generation *out,
                            struct fathom_err *err);
void generation_release(struct generation *g);

#endif
