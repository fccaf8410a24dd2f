/* The two sides of a hyper-connection; kernel.h says what they are for, spec deepseek-v4 §2.2 gives the steps.
 *
 * Sums over the streams ascend, products and sums are rounded one by one; the mean square has 16 lanes. */
#include <math.h>

#include "kernel/math.h"
#include "kernel/ref/ref_ops.h"

/* 1 / rms of a row. */
static float inverse_rms(const float *x, size_t n, float eps)
{
    float lanes[16] = {0};
    for (size_t i = 0; i < n; i++)
        lanes[i % 16] += x[i] * x[i];
    return 1.0f / sqrtf(fold_lanes(lanes) / (float)n + eps);
}

/* Divides each of n groups of s numbers by its sum + eps; the numbers of a group are `step` apart. */
static void normalise(float *comb, size_t s, size_t group, size_t step, float eps)
{
    for (size_t g = 0; g < s; g++) {
        float *p = comb + g * group, sum = 0.0f;
        for (size_t i = 0; i < s; i++)
            sum += p[i * step];
        for (size_t i = 0; i < s; i++)
            p[i * step] /= sum + eps;
    }
}

static void row_softmax(float *row, size_t s, float eps)
{
    float max = row[0], sum = 0.0f;
    for (size_t c = 1; c < s; c++)
        max = row[c] > max ? row[c] : max;
    for (size_t c = 0; c < s; c++)
        sum += row[c] = exp_f32(row[c] - max);
    for (size_t c = 0; c < s; c++)
        row[c] = row[c] / sum + eps;
}

/* comb[j][c], source j, destination c: a softmax over each row, then columns and rows in turn, columns last. */
static void sinkhorn(float *comb, struct hyper_shape shape)
{
    size_t s = shape.n_streams;
    for (size_t j = 0; j < s; j++)
        row_softmax(comb + j * s, s, shape.eps);
    normalise(comb, s, 1, s, shape.eps);
    for (size_t i = 1; i < shape.n_iters; i++) {
        normalise(comb, s, s, 1, shape.eps);
        normalise(comb, s, 1, s, shape.eps);
    }
}

void hyper_split_ref(struct run *run, struct tensor *h, struct tensor *mix, const struct tensor *x,
                     const struct tensor *m, const struct hyper_weights *w, struct hyper_shape shape)
{
    size_t s = shape.n_streams, dim = h->shape[1];
    (void)run;
    for (size_t row = 0; row < h->shape[0]; row++) {
        const float *streams = tensor_row(x, row), *product = tensor_row(m, row);
        float *out = tensor_row(h, row), rho = inverse_rms(streams, s * dim, shape.norm_eps);
        for (size_t i = 0; i < dim; i++)
            out[i] = 0.0f;
        for (size_t j = 0; j < s; j++) {
            float pre = sigmoid_f32(product[j] * rho * value_f32(&w->scale, 0) + value_f32(&w->base, j)) + shape.eps;
            for (size_t i = 0; i < dim; i++)
                out[i] += pre * streams[j * dim + i];
        }
        if (!mix)
            continue;
        float *post = tensor_row(mix, row), *comb = post + s;
        for (size_t j = 0; j < s; j++)
            post[j] = 2.0f * sigmoid_f32(product[s + j] * rho * value_f32(&w->scale, 1) + value_f32(&w->base, s + j));
        for (size_t j = 0; j < s * s; j++)
            comb[j] = product[2 * s + j] * rho * value_f32(&w->scale, 2) + value_f32(&w->base, 2 * s + j);
        sinkhorn(comb, shape);
    }
}

#define PIECE 64 /* channels whose old streams are kept while the new ones are written */

void hyper_merge_ref(struct run *run, struct tensor *x, const struct tensor *u, const struct tensor *mix,
                     size_t n_streams)
{
    size_t s = n_streams, dim = u->shape[1];
    float old[MAX_STREAMS][PIECE];
    (void)run;
    for (size_t row = 0; row < u->shape[0]; row++) {
        const float *in = tensor_row(u, row), *post = tensor_row(mix, row), *comb = post + s;
        float *streams = tensor_row(x, row);
        for (size_t first = 0; first < dim; first += PIECE) {
            size_t n = dim - first < PIECE ? dim - first : PIECE;
            for (size_t j = 0; j < s; j++)
                memcpy(old[j], streams + j * dim + first, n * sizeof **old);
            for (size_t c = 0; c < s; c++) {
                float *out = streams + c * dim + first;
                for (size_t i = 0; i < n; i++)
                    out[i] = post[c] * in[first + i];
                for (size_t j = 0; j < s; j++)
                    for (size_t i = 0; i < n; i++)
                        out[i] += comb[j * s + c] * old[j][i];
            }
        }
    }
}
