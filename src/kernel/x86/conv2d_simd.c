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

/* The window of one output position. Its corner may lie in the padding, so positions in the map are taken modulo
 * SIZE_MAX + 1 and anything left of or above the map is larger than its sides. */
struct window {
    const float *map;
    size_t y0, x0;
};

static struct window window_at(const struct conv_job *c, size_t row)
{
    size_t view = row / (c->oh * c->ow), oy = row / c->ow % c->oh, ox = row % c->ow;
    return (struct window){.map = (const float *)c->x->data + view * c->x->stride[0],
                           .y0 = oy * c->shape.stride - c->shape.pad,
                           .x0 = ox * c->shape.stride - c->shape.pad};
}

/* Elements [k, k + n_k) where neighbours in a row of the map are neighbours in memory: row after row of the window. */
static void read_rows(const struct conv_job *c, struct window at, float *to, size_t k, size_t n_k)
{
    const struct tensor *x = c->x;
    size_t kernel = c->shape.kernel, kx = k % kernel, ky = k / kernel % kernel, channel = k / (kernel * kernel);
    while (n_k > 0) {
        size_t n = kernel - kx < n_k ? kernel - kx : n_k, y = at.y0 + ky;
        bool inside = y < x->shape[1];
        const float *from = inside ? at.map + y * x->stride[1] + channel * x->stride[3] : NULL;
        for (size_t i = 0; i < n; i++) {
            size_t ix = at.x0 + kx + i;
            to[i] = inside && ix < x->shape[2] ? from[ix] : 0.0f;
        }
        to += n, n_k -= n, kx = 0;
        if (++ky == kernel)
            ky = 0, channel++;
    }
}

/* The same for any strides, best where channels are neighbours: for each tap all channels. */
static void read_taps(const struct conv_job *c, struct window at, float *to, size_t k, size_t n_k)
{
    const struct tensor *x = c->x;
    size_t taps = c->shape.kernel * c->shape.kernel;
    for (size_t tap = 0; tap < taps; tap++) {
        size_t y = at.y0 + tap / c->shape.kernel, ix = at.x0 + tap % c->shape.kernel;
        size_t channel = k > tap ? (k - tap + taps - 1) / taps : 0;
        bool inside = y < x->shape[1] && ix < x->shape[2];
        const float *from = inside ? at.map + y * x->stride[1] + ix * x->stride[2] : NULL;
        for (size_t i = channel * taps + tap; i < k + n_k; i += taps, channel++)
            to[i - k] = inside ? from[channel * x->stride[3]] : 0.0f;
    }
}

static void read_window(const struct gemm_job *job, float *to, size_t row, size_t k, size_t n_k)
{
    const struct conv_job *c = job->ctx;
    if (c->x->stride[2] == 1)
        read_rows(c, window_at(c, row), to, k, n_k);
    else
        read_taps(c, window_at(c, row), to, k, n_k);
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
