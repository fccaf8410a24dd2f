/* Rotary positions of DeepSeek-V4, in place, on the last 2 * n_pairs channels of every head: for each pair i of
 * neighbours (a, b) = (x[2i], x[2i + 1]) of that slice
 *     x[2i] = a cos - b sin,  x[2i + 1] = a sin + b cos,  angle = (float)pos * frequencies[i]
 * The angle is rounded to float32 before its sine and cosine are taken, as the official code does; at a million tokens
 * that is what decides. Nothing is fused. */
#include <math.h>

#include "kernel/ref/ref_ops.h"

void rope_pairs_ref(struct run *run, struct tensor *x, size_t n_heads, const int32_t *pos, const float *frequencies,
                    size_t n_pairs, bool inverse)
{
    size_t d = x->shape[1] / n_heads;
    (void)run;
    for (size_t row = 0; row < x->shape[0]; row++)
        for (size_t i = 0; i < n_pairs; i++) {
            float angle = (float)pos[row] * frequencies[i];
            float c = (float)cos((double)angle), s = (float)sin((double)angle);
            float *pair = (float *)tensor_row(x, row) + d - 2 * n_pairs + 2 * i;
            s = inverse ? -s : s;
            for (size_t h = 0; h < n_heads; h++, pair += d) {
                float a = pair[0], b = pair[1];
                pair[0] = a * c - b * s;
                pair[1] = a * s + b * c;
            }
        }
}
