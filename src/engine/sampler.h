/* The next token from logits: greedy (ties to the lower id), or by temperature and top-p with a seeded generator. */
#ifndef FATHOM_ENGINE_SAMPLER_H
#define FATHOM_ENGINE_SAMPLER_H

#include "base/err.h"

struct sampler {
    float temperature, top_p;      /* temperature 0: greedy */
    uint64_t state;                /* of the generator      */
    struct sampler_entry *entries; /* owned; work space for n entries, NULL when greedy */
};

/* n: the length of the logits that will be sampled. */
enum fathom_status sampler_init(struct sampler *s, float temperature, float top_p, uint64_t seed, size_t n,
                                struct fathom_err *err);
void sampler_release(struct sampler *s);

/* The chosen id, or -1 when a logit is NaN or none is finite. */
int32_t sampler_next(struct sampler *s, const float *logits, size_t n);

#endif
