#include "weights/synth_blocks.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/fp8.h"

#define F8_MOST 448.0f
#define F4_MOST 6.0f

struct filling {
    const struct synth_blocks *b;
    size_t first, n;
    uint8_t *codes, *scales; /* one of them NULL */
    atomic_bool failed;
};

static float largest(const float *x, size_t rows, size_t cols, size_t stride)
{
    float most = 0.0f;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            most = fmaxf(most, fabsf(x[r * stride + c]));
    return most;
}

/* A block of the n_rows rows at x, whose first column is col: its scale and its codes, each where it is wanted. */
static void fill_block(const struct filling *f, const float *x, size_t row, size_t n_rows, size_t col, size_t n_cols)
{
    const struct synth_blocks *b = f->b;
    bool is_f8 = b->dtype == DTYPE_F8_E4M3;
    size_t shape[2], cols = b->cols;
    uint8_t scale = e8m0_scale(largest(x, n_rows, n_cols, cols), is_f8 ? F8_MOST : F4_MOST);
    scale_shape(b->dtype, b->rows, cols, shape);
    if (f->scales)
        f->scales[(is_f8 ? row / F8_BLOCK : row) * shape[1] + col / (is_f8 ? F8_BLOCK : F4_BLOCK)] = scale;
    if (!f->codes)
        return;
    float inverse = 1.0f / e8m0_to_f32(scale);
    for (size_t r = 0; r < n_rows; r++)
        for (size_t c = 0; c < n_cols; c += is_f8 ? 1 : 2) {
            const float *v = x + r * cols + c;
            size_t at = (row + r) * cols + col + c;
            if (is_f8)
                f->codes[at] = e4m3_from_f32(v[0] * inverse);
            else
                f->codes[at / 2] = (uint8_t)(e2m1_from_f32(v[0] * inverse) | e2m1_from_f32(v[1] * inverse) << 4);
        }
}

/* SYNTH_BLOCK_ROWS rows. */
static void fill_task(void *ctx, size_t task, int thread)
{
    (void)thread;
    struct filling *f = ctx;
    const struct synth_blocks *b = f->b;
    size_t row = task * SYNTH_BLOCK_ROWS, left = f->n - row, n = left < SYNTH_BLOCK_ROWS ? left : SYNTH_BLOCK_ROWS;
    bool is_f8 = b->dtype == DTYPE_F8_E4M3;
    size_t height = is_f8 ? n : 1, width = is_f8 ? F8_BLOCK : F4_BLOCK;
    float *x = malloc(n * b->cols * sizeof *x);
    if (!x) {
        f->failed = true;
        return;
    }
    synth_fill_f32_rounded(x, b->name, (f->first + row) * b->cols, n * b->cols, b->range.center, b->range.amp, NULL);
    for (size_t r = 0; r < n; r += height)
        for (size_t c = 0; c < b->cols; c += width) {
            size_t n_cols = b->cols - c < width ? b->cols - c : width;
            fill_block(f, x + r * b->cols + c, row + r, height, c, n_cols);
        }
    free(x);
}

static enum fathom_status fill(struct filling *f, struct pool *pool, struct fathom_err *err)
{
    size_t n_tasks = (f->n + SYNTH_BLOCK_ROWS - 1) / SYNTH_BLOCK_ROWS;
    if (pool)
        pool_run(pool, n_tasks, fill_task, f);
    else
        for (size_t i = 0; i < n_tasks; i++)
            fill_task(f, i, 0);
    return f->failed ? fail_nomem(err, SYNTH_BLOCK_ROWS * f->b->cols * sizeof(float), "rows of weights") : FATHOM_OK;
}

enum fathom_status synth_fill_codes(uint8_t *dst, const struct synth_blocks *b, size_t first, size_t n,
                                    struct pool *pool, struct fathom_err *err)
{
    struct filling f = {.b = b, .first = first, .n = n, .codes = dst};
    return fill(&f, pool, err);
}

enum fathom_status synth_fill_scales(uint8_t *dst, const struct synth_blocks *b, size_t first, size_t n,
                                     struct pool *pool, struct fathom_err *err)
{
    struct filling f = {.b = b, .first = first, .n = n, .scales = dst};
    return fill(&f, pool, err);
}
