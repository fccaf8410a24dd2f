/* One attempt at a page that was seen: prompt -> prefill -> tokens -> text. */
#ifndef FATHOM_ENGINE_ATTEMPT_H
#define FATHOM_ENGINE_ATTEMPT_H

#include "base/strbuf.h"
#include "engine/sight.h"

/* A prompt in the context's cache. It can be answered again until another one is asked. */
struct question {
    size_t n_tok;  /* the prompt's, with the picture's                      */
    float *logits; /* [vocab_size], owned: those after its last token       */
    double prefill_ms, prefill_flop;
};
enum fathom_status question_ask(struct question *out, const struct reader *reader, const struct sight *sight,
                                const char *prompt, struct fathom_err *err);
void question_release(struct question *q); /* a zeroed one is fine */

/* What came of an attempt. */
struct outcome {
    struct strbuf text; /* the model's output, owned */
    enum fathom_page_status status;
    bool context_full;         /* truncated because the context was full, not because the caller wanted no more */
    struct fathom_stats stats; /* but decode_image_ms, arena_peak_bytes and mapped_bytes */
};

/* Answers with a no-repeat guard of ngram tokens in a window, the other options being the reader's. stream: hand the text
 * to on_text. Cancelled (FATHOM_ECANCELLED), the outcome holds the text so far. */
enum fathom_status question_answer(struct outcome *out, const struct reader *reader, const struct sight *sight,
                                   const struct question *q, int ngram, int ngram_window, bool stream,
                                   struct fathom_err *err);
void outcome_release(struct outcome *o); /* a zeroed one is fine */

#endif
