/* Values that enter a run, leave it or change their place: in this process's memory these are copies, rounded as the
 * run's activations are. */
#include <string.h>

#include "kernel/ref/ref_ops.h"

void upload_ref(struct run *run, struct tensor *y, const float *x)
{
    size_t n = tensor_elements(y);
    float *out = y->data;
    memcpy(out, x, n * sizeof *out);
    for (size_t i = 0; i < n && run->act == FATHOM_BF16; i++)
        out[i] = bf16_round(out[i]);
}

void upload_ids_ref(struct run *run, int32_t *y, const int32_t *x, size_t n)
{
    (void)run;
    memcpy(y, x, n * sizeof *y);
}

void download_ref(struct run *run, float *y, const struct tensor *x)
{
    (void)run;
    for (size_t row = 0; row < x->shape[0]; row++)
        memcpy(y + row * x->shape[1], tensor_row(x, row), x->shape[1] * sizeof *y);
}

void copy_ref(struct run *run, struct tensor *y, const struct tensor *x)
{
    for (size_t row = 0; row < y->shape[0]; row++) {
        float *out = tensor_row(y, row);
        weight_row_f32(out, x, row);
        for (size_t i = 0; i < y->shape[1]; i++)
            out[i] = stored_f32(run, out[i]);
    }
}

void positions_ref(struct run *run, int32_t *pos, int32_t first, size_t n)
{
    (void)run;
    for (size_t i = 0; i < n; i++)
        pos[i] = first + (int32_t)i;
}
