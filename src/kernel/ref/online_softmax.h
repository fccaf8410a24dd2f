/* The softmax of one query, fed with the keys tile by tile (kernel.h, "attention"). */
#ifndef FATHOM_KERNEL_REF_ONLINE_SOFTMAX_H
#define FATHOM_KERNEL_REF_ONLINE_SOFTMAX_H

#include "kernel/math.h"
#include "kernel/ref/ref_ops.h"

struct online_softmax {
    float max;      /* m                                  */
    float sums[16]; /* l, by position in the tile modulo 16 */
    float *acc;     /* [d], borrowed                      */
    size_t d;
};

static inline struct online_softmax online_softmax_init(float *acc, size_t d)
{
    struct online_softmax o = {.max = -INFINITY, .acc = acc, .d = d};
    for (size_t j = 0; j < d; j++)
        acc[j] = 0.0f;
    return o;
}

static inline float dot_f32(const float *a, const float *b, size_t n)
{
    float acc = 0.0f;
    for (size_t i = 0; i < n; i++)
        acc = fmaf(a[i], b[i], acc);
    return acc;
}

/* The scores s[0..n) of a tile become its probabilities (not yet divided by the sum). */
static inline void online_softmax_scores(struct online_softmax *o, float *s, size_t n)
{
    float max = o->max;
    for (size_t k = 0; k < n; k++)
        max = s[k] > max ? s[k] : max;
    float alpha = exp_f32(o->max - max);
    o->max = max;
    for (size_t i = 0; i < 16; i++)
        o->sums[i] *= alpha;
    for (size_t j = 0; j < o->d; j++)
        o->acc[j] *= alpha;
    for (size_t k = 0; k < n; k++) {
        s[k] = exp_f32(s[k] - max);
        o->sums[k % 16] += s[k];
    }
}

/* One key's value, keys in ascending order. */
static inline void online_softmax_value(struct online_softmax *o, float p, const float *v)
{
    for (size_t j = 0; j < o->d; j++)
        o->acc[j] = fmaf(p, v[j], o->acc[j]);
}

static inline void online_softmax_result(struct online_softmax *o, const struct run *run, float *y)
{
    float inverse = 1.0f / fold_lanes(o->sums);
    for (size_t j = 0; j < o->d; j++)
        y[j] = stored_f32(run, o->acc[j] * inverse);
}

#endif
