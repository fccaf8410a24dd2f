/* y = silu(x gate^T) * (x up^T). In bfloat16 each of the four values is stored, so each is rounded. */
#include "kernel/math.h"
#include "kernel/ref/ref_ops.h"

void swiglu_ref(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *gate,
                const struct tensor *up)
{
    struct arena_mark mark = arena_save(run->arena);
    struct tensor u = run_alloc(run, y->shape[0], y->shape[1]);
    if (run_ok(run)) {
        linear_ref(run, y, x, gate, NULL, EPILOGUE_NONE);
        linear_ref(run, &u, x, up, NULL, EPILOGUE_NONE);
        for (size_t row = 0; row < y->shape[0]; row++) {
            float *g = tensor_row(y, row);
            const float *u_row = tensor_row(&u, row);
            for (size_t i = 0; i < y->shape[1]; i++)
                g[i] = stored_f32(run, stored_f32(run, silu_f32(g[i])) * u_row[i]);
        }
    }
    arena_restore(run->arena, mark);
}
