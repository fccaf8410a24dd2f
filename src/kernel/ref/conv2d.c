/* y [views, oh, ow, out]: at each output position the window of x, as one row in the order of the weights
 * (in, kh, kw), through linear. Positions outside the map are zero and take part in the sum. */
#include "kernel/ref/ref_ops.h"

void conv2d_ref(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
                const struct tensor *bias, struct conv2d_shape s)
{
    struct arena_mark mark = arena_save(run->arena);
    struct tensor window = run_alloc(run, 1, w->shape[1]);
    size_t positions = y->shape[1] * y->shape[2];
    for (size_t p = 0; p < y->shape[0] * positions && run_ok(run); p++) {
        size_t view = p / positions, oy = p % positions / y->shape[2], ox = p % y->shape[2];
        const float *map = (const float *)x->data + view * x->stride[0];
        float *out = window.data;
        for (size_t c = 0; c < x->shape[3]; c++)
            for (size_t ky = 0; ky < s.kernel; ky++)
                for (size_t kx = 0; kx < s.kernel; kx++) {
                    size_t iy = oy * s.stride + ky, ix = ox * s.stride + kx; /* both shifted by pad */
                    bool inside = iy >= s.pad && iy - s.pad < x->shape[1] && ix >= s.pad && ix - s.pad < x->shape[2];
                    *out++ = inside ? map[(iy - s.pad) * x->stride[1] + (ix - s.pad) * x->stride[2] + c * x->stride[3]]
                                    : 0.0f;
                }
        struct tensor y_row = tensor_2d(DTYPE_F32, (float *)y->data + p * y->shape[3], 1, y->shape[3]);
        linear_ref(run, &y_row, &window, w, bias, EPILOGUE_NONE);
    }
    arena_restore(run->arena, mark);
}
