/* y [views, oh, ow, out] as a product: a row of A is the window of x at one output position in the order of the weights
 * (in, kh, kw), made as it is needed; the matrix of all windows never exists. */
#include "kernel/x86/finish.h"
#include "kernel/x86/gemm.h"
#include "kernel/x86/simd_ops.h"

struct conv_job {
    struct finish finish;
    const struct tensor *x;
    struct conv2d_shape shape;
    size_t oh, ow;
};

/* Elements [kx, kx + n) of one row of a window that starts at column x0 (shifted by pad) of a row of the map. */
static void read_taps(float *to, const float *map_row, size_t stride, size_t width, size_t pad, size_t x0, size_t kx,
                      size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t ix = x0 + kx + i;
        to[i] = ix >= pad && ix - pad < width ? map_row[(ix - pad) * stride] : 0.0f;
    }
}

static void read_window(const struct gemm_job *job, float *to, size_t row, size_t k, size_t n_k)
{
    const struct conv_job *c = job->ctx;
    const struct tensor *x = c->x;
    size_t kernel = c->shape.kernel, pad = c->shape.pad, view = row / (c->oh * c->ow);
    size_t y0 = row / c->ow % c->oh * c->shape.stride, x0 = row % c->ow * c->shape.stride;
    const float *map = (const float *)x->data + view * x->stride[0];
    size_t kx = k % kernel, ky = k / kernel % kernel, channel = k / (kernel * kernel);
    while (n_k > 0) {
        size_t n = kernel - kx < n_k ? kernel - kx : n_k, iy = y0 + ky;
        if (iy >= pad && iy - pad < x->shape[1])
            read_taps(to, map + (iy - pad) * x->stride[1] + channel * x->stride[3], x->stride[2], x->shape[2], pad, x0,
                      kx, n);
        else
            for (size_t i = 0; i < n; i++)
                to[i] = 0.0f;
        to += n, n_k -= n, kx = 0;
        if (++ky == kernel)
            ky = 0, channel++;
    }
}

static void finish_row(const struct gemm_job *job, size_t row, size_t col, size_t n_cols, float *c, const float *c2)
{
    (void)row, (void)c2;
    const struct conv_job *conv = job->ctx;
    finish_linear(&conv->finish, col, n_cols, c);
}

void SIMD_NAME(conv2d)(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
                       const struct tensor *bias, struct conv2d_shape shape)
{
    struct conv_job conv = {.finish = {.bias = bias, .round = run->act == FATHOM_BF16},
                            .x = x,
                            .shape = shape,
                            .oh = y->shape[1],
                            .ow = y->shape[2]};
    struct gemm_job job = {.m = y->shape[0] * y->shape[1] * y->shape[2],
                           .n = y->shape[3],
                           .k = w->shape[1],
                           .w = w,
                           .read = read_window,
                           .finish = finish_row,
                           .ctx = &conv,
                           .c = y->data,
                           .c_stride = y->shape[3]};
    bool is_matrix =
        x->stride[3] == 1 && x->stride[1] == x->shape[2] * x->stride[2] && x->stride[0] == x->shape[1] * x->stride[1];
    if (shape.kernel == 1 && shape.stride == 1 && shape.pad == 0 && is_matrix) {
        job.x = x->data;
        job.x_stride = x->stride[2];
    }
    SIMD_NAME(gemm)(run, &job, 1);
}
