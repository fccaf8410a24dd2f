/* y [n, out] = epilogue(x [n, in] w [out, in]^T + bias): a single chain of fused multiply-adds over ascending k for
 * each output, then the bias, then the epilogue. Rounded to bfloat16, when the run says so, before and after the
 * epilogue, as two operations of the reference implementation would. */
#include "kernel/math.h"
#include "kernel/ref/ref_ops.h"

static float finish(const struct run *run, float acc, enum epilogue epilogue)
{
    acc = stored_f32(run, acc);
    switch (epilogue) {
    case EPILOGUE_NONE: return acc;
    case EPILOGUE_GELU: return stored_f32(run, gelu_f32(acc));
    case EPILOGUE_QUICK_GELU: return stored_f32(run, quick_gelu_f32(acc));
    }
    return acc;
}

void linear_ref(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
                const struct tensor *bias, enum epilogue epilogue)
{
    size_t n_in = x->shape[1];
    struct arena_mark mark = arena_save(run->arena);
    float *w_row = run_scratch(run, n_in, sizeof(float));
    for (size_t out = 0; out < y->shape[1] && w_row; out++) {
        weight_row_f32(w_row, w, out);
        for (size_t row = 0; row < y->shape[0]; row++) {
            const float *x_row = tensor_row(x, row);
            float acc = 0.0f;
            for (size_t k = 0; k < n_in; k++)
                acc = fmaf(x_row[k], w_row[k], acc);
            if (bias)
                acc += value_f32(bias, out);
            ((float *)tensor_row(y, row))[out] = finish(run, acc, epilogue);
        }
    }
    arena_restore(run->arena, mark);
}
