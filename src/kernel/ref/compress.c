/* Entries of compressed attention: per channel a softmax over the rows of a window, and the weighted sum of their values
 * (spec deepseek-v4 §2.7). Rows ascend: maximum, then l += p and acc = fma(p, value, acc), then acc / l. */
#include <math.h>

#include "kernel/math.h"
#include "kernel/ref/ref_ops.h"

struct pooled {
    float max, sum, acc;
};

/* The rows of one window; `first` is its first row in values and scores, `column` the channel in both and in ape. */
static float score_of(const struct tensor *scores, const struct tensor *ape, size_t first, size_t t, size_t column)
{
    return ((const float *)tensor_row(scores, first + t))[column] + ((const float *)tensor_row(ape, t))[column];
}

static void add_row(struct pooled *p, float score, float value)
{
    float weight = exp_f32(score - p->max);
    p->sum += weight;
    p->acc = fmaf(weight, value, p->acc);
}

void compress_ref(struct run *run, struct tensor *y, const struct tensor *values, const struct tensor *scores,
                  const struct tensor *ape, struct compress_shape shape)
{
    size_t d = y->shape[1], ratio = shape.ratio;
    (void)run;
    for (size_t window = 0; window < y->shape[0]; window++) {
        size_t own = (window + (shape.overlap && shape.has_previous)) * ratio;
        bool overlaps = shape.overlap && own > 0;
        for (size_t j = 0; j < d; j++) {
            size_t column = shape.overlap ? d + j : j;
            struct pooled p = {-INFINITY, 0.0f, 0.0f};
            for (size_t t = 0; t < ratio; t++) {
                float before = overlaps ? score_of(scores, ape, own - ratio, t, j) : -INFINITY;
                float score = score_of(scores, ape, own, t, column);
                p.max = before > p.max ? before : p.max;
                p.max = score > p.max ? score : p.max;
            }
            for (size_t t = 0; overlaps && t < ratio; t++)
                add_row(&p, score_of(scores, ape, own - ratio, t, j),
                        ((const float *)tensor_row(values, own - ratio + t))[j]);
            for (size_t t = 0; t < ratio; t++)
                add_row(&p, score_of(scores, ape, own, t, column),
                        ((const float *)tensor_row(values, own + t))[column]);
            ((float *)tensor_row(y, window))[j] = p.acc / p.sum;
        }
    }
}
