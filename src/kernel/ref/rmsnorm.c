/* y = x * (1 / sqrt(mean square + eps)) * w, row by row.
 * x, y: f32 [n, m], any row stride, y may be x; w: [m]. The squares are summed by fma in 16 lanes. The normalised value
 * is stored (rounded) before it meets the weight, as the reference implementation does. */
#include <math.h>

#include "kernel/ref/ref_ops.h"

void rmsnorm_ref(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w, float eps)
{
    size_t n = x->shape[0], m = x->shape[1];
    for (size_t r = 0; r < n; r++) {
        const float *in = tensor_row(x, r);
        float *out = tensor_row(y, r), squares[16] = {0};
        for (size_t j = 0; j < m; j++)
            squares[j % 16] = fmaf(in[j], in[j], squares[j % 16]);
        float inverse = 1.0f / sqrtf(fold_lanes(squares) / (float)m + eps);
        for (size_t j = 0; j < m; j++)
            out[j] = stored_f32(run, stored_f32(run, in[j] * inverse) * value_f32(w, j));
    }
}
