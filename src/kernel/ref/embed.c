/* y [n, dim] = rows ids[0..n) of table. */
#include "kernel/ref/ref_ops.h"

void embed_ref(struct run *run, struct tensor *y, const struct tensor *table, const int32_t *ids)
{
    for (size_t row = 0; row < y->shape[0]; row++) {
        float *out = tensor_row(y, row);
        weight_row_f32(out, table, (size_t)ids[row]);
        for (size_t i = 0; i < y->shape[1]; i++)
            out[i] = stored_f32(run, out[i]);
    }
}
