/* y = (x - mean) * (1 / sqrt(var + eps)) * w + bias, row by row.
 * x, y: f32 [n, m], any row stride, y may be x; w, bias: [m]. mean = sum x / m; var = sum fma(d, d, .) / m with
 * d = x - mean, both in 16 lanes; result = fma((x - mean) * inverse, w, bias), rounded once. */
#include <math.h>

#include "kernel/ref/ref_ops.h"

void layernorm_ref(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
                   const struct tensor *bias, float eps)
{
    size_t n = x->shape[0], m = x->shape[1];
    for (size_t r = 0; r < n; r++) {
        const float *in = tensor_row(x, r);
        float *out = tensor_row(y, r), sums[16] = {0}, squares[16] = {0};
        for (size_t j = 0; j < m; j++)
            sums[j % 16] += in[j];
        float mean = fold_lanes(sums) / (float)m;
        for (size_t j = 0; j < m; j++) {
            float d = in[j] - mean;
            squares[j % 16] = fmaf(d, d, squares[j % 16]);
        }
        float inverse = 1.0f / sqrtf(fold_lanes(squares) / (float)m + eps);
        for (size_t j = 0; j < m; j++)
            out[j] = stored_f32(run, fmaf((in[j] - mean) * inverse, value_f32(w, j), value_f32(bias, j)));
    }
}
