/* x += y */
#include "kernel/ref/ref_ops.h"

void add_ref(struct run *run, struct tensor *x, const struct tensor *y)
{
    for (size_t row = 0; row < x->shape[0]; row++) {
        float *a = tensor_row(x, row);
        const float *b = tensor_row(y, row);
        for (size_t i = 0; i < x->shape[1]; i++)
            a[i] = stored_f32(run, a[i] + b[i]);
    }
}
