/* The windowed no-repeat n-gram guard (spec deepseek-ocr §6.1). */
#ifndef FATHOM_TEXT_NGRAM_GUARD_H
#define FATHOM_TEXT_NGRAM_GUARD_H

#include <stddef.h>
#include <stdint.h>

struct ngram_guard {
    int n, window;      /* n 0: off */
    int32_t allowed[2]; /* never banned (<td>, </td>), -1: none */
};

/* Sets the logits of banned ids to -inf; out are the generated ids alone. Returns how many became -inf. Time is window * n
 * at worst, in words compared; nothing is allocated. */
size_t ngram_guard_apply(const struct ngram_guard *g, const int32_t *out, size_t n_out, float *logits, size_t n_logits);

#endif
