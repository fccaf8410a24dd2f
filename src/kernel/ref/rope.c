/* Rotary positions, in place: for each head of width d and each j < d/2, with (a, b) = (x[j], x[j + d/2]) and the angle
 * pos[row] * theta^(-2j/d):
 *     x[j] = a cos - b sin,  x[j + d/2] = b cos + a sin
 * x: f32 [n, n_heads * d], any row stride, d even. cos and sin come from double precision. The table, each product and
 * each sum are stored (rounded) one by one, as the reference implementation does; nothing is fused. */
#include "kernel/ref/rope_table.h"

#include <math.h>

#include "kernel/ref/ref_ops.h"

void rope_frequencies(double *frequencies, size_t half, float theta)
{
    for (size_t j = 0; j < half; j++)
        frequencies[j] = pow((double)theta, -(double)j / (double)half);
}

void rope_table(const struct run *run, float *cosines, float *sines, const double *frequencies, size_t half,
                int32_t pos)
{
    for (size_t j = 0; j < half; j++) {
        double angle = (double)pos * frequencies[j];
        cosines[j] = stored_f32(run, (float)cos(angle));
        sines[j] = stored_f32(run, (float)sin(angle));
    }
}

void rope_ref(struct run *run, struct tensor *x, size_t n_heads, const int32_t *pos, float theta)
{
    size_t n = x->shape[0], d = x->shape[1] / n_heads, half = d / 2;
    struct arena_mark mark = arena_save(run->arena);
    double *frequencies = run_scratch(run, half, sizeof *frequencies);
    float *cosines = run_scratch(run, half, sizeof *cosines), *sines = run_scratch(run, half, sizeof *sines);
    if (!run_ok(run))
        return;
    rope_frequencies(frequencies, half, theta);
    for (size_t r = 0; r < n; r++) {
        rope_table(run, cosines, sines, frequencies, half, pos[r]);
        for (size_t h = 0; h < n_heads; h++) {
            float *low = (float *)tensor_row(x, r) + h * d, *high = low + half;
            for (size_t j = 0; j < half; j++) {
                float a = low[j], b = high[j], c = cosines[j], s = sines[j];
                low[j] = stored_f32(run, stored_f32(run, a * c) - stored_f32(run, b * s));
                high[j] = stored_f32(run, stored_f32(run, b * c) + stored_f32(run, a * s));
            }
        }
    }
    arena_restore(run->arena, mark);
}
