#include "text/ngram_guard.h"

#include <math.h>
#include <string.h>

size_t ngram_guard_apply(const struct ngram_guard *g, const int32_t *out, size_t n_out, float *logits, size_t n_logits)
{
    if (g->n <= 0 || g->window <= 0 || n_out < (size_t)g->n)
        return 0;
    size_t n_prefix = (size_t)g->n - 1, n_banned = 0;
    const int32_t *prefix = out + n_out - n_prefix;
    for (size_t i = n_out > (size_t)g->window ? n_out - (size_t)g->window : 0; i + n_prefix < n_out; i++) {
        int32_t id = out[i + n_prefix];
        if (id < 0 || (size_t)id >= n_logits || id == g->allowed[0] || id == g->allowed[1])
            continue;
        if (memcmp(out + i, prefix, n_prefix * sizeof *out) != 0 || logits[id] == -INFINITY)
            continue;
        logits[id] = -INFINITY;
        n_banned++;
    }
    return n_banned;
}
