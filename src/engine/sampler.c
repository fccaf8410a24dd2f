#include "engine/sampler.h"

#include <math.h>
#include <stdlib.h>

#include "kernel/math.h"

struct sampler_entry {
    float p;
    int32_t id;
};

enum fathom_status sampler_init(struct sampler *s, float temperature, float top_p, uint64_t seed, size_t n,
                                struct fathom_err *err)
{
    *s = (struct sampler){.temperature = temperature, .top_p = top_p, .state = seed};
    if (temperature > 0 && !(s->entries = calloc(n, sizeof *s->entries)))
        return fail_nomem(err, n * sizeof *s->entries, "sampling");
    return FATHOM_OK;
}

void sampler_release(struct sampler *s)
{
    free(s->entries);
    s->entries = NULL;
}

/* splitmix64, to 24 bits in [0, 1). */
static float uniform(struct sampler *s)
{
    uint64_t z = s->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (float)((z ^ z >> 31) >> 40) * 0x1p-24f;
}

static int by_p_then_id(const void *a, const void *b)
{
    const struct sampler_entry *x = a, *y = b;
    if (x->p != y->p)
        return x->p < y->p ? 1 : -1;
    return x->id < y->id ? -1 : x->id > y->id;
}

int32_t sampler_next(struct sampler *s, const float *logits, size_t n)
{
    size_t best = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(logits[i]))
            return -1;
        if (logits[i] > logits[best])
            best = i;
    }
    if (n == 0 || !isfinite(logits[best]))
        return -1;
    if (s->temperature <= 0)
        return (int32_t)best;

    float sum = 0, kept = 0;
    size_t n_kept = 0, n_entries = 0;
    for (size_t i = 0; i < n; i++) {
        float p = exp_f32((logits[i] - logits[best]) / s->temperature);
        sum += p;
        if (p > 1e-9f) /* the rest cannot matter and would only be sorted */
            s->entries[n_entries++] = (struct sampler_entry){p, (int32_t)i};
    }
    qsort(s->entries, n_entries, sizeof *s->entries, by_p_then_id);
    while (n_kept < n_entries && (n_kept == 0 || kept < s->top_p * sum))
        kept += s->entries[n_kept++].p;
    float at = uniform(s) * kept;
    size_t pick = 0;
    while (pick + 1 < n_kept && at >= s->entries[pick].p)
        at -= s->entries[pick++].p;
    return s->entries[pick].id;
}
