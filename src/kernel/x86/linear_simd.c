/* linear and swiglu. Few rows: the matrices are streamed once, a task taking a run of neighbouring rows (matvec.h);
 * many: blocked products (gemm.h). Both give the bits of ref/linear.c and ref/swiglu.c. */
#include "kernel/x86/finish.h"
#include "kernel/x86/gemm.h"
#include "kernel/x86/matvec.h"
#include "kernel/x86/simd_ops.h"

#include <string.h>

#define SMALL_WEIGHTS 65536 /* elements that are not worth waking another thread for */

/* ---- few rows of x --------------------------------------------------------------------------------------------- */

struct stream {
    struct tensor *y;
    const struct tensor *x, *w, *w2; /* w2: up of swiglu, or NULL */
    struct matvec_input input;       /* x                         */
    struct finish finish;
    const size_t *starts; /* of each task's run of blocks */
};

/* The sums of a block of outputs; the block after it is next unless this is the task's last. */
static void block_sums(const struct stream *s, const struct tensor *w, size_t block, size_t end, float *sums)
{
    struct weight_rows rows = matvec_block(w, block), next = rows;
    if (block + 1 < end)
        next = matvec_block(w, block + 1);
    SIMD_NAME(matvec)(rows, &s->input, sums, &next);
}

static void stream_task(void *ctx, size_t task, int thread)
{
    (void)thread;
    const struct stream *s = ctx;
    size_t block = s->starts[task], end = s->starts[task + 1];
    float sum[MATVEC_MAX_M * MATVEC_ROWS], sum2[MATVEC_MAX_M * MATVEC_ROWS];
    SIMD_NAME(matvec_begin)(matvec_block(s->w, block));
    if (s->w2)
        SIMD_NAME(matvec_begin)(matvec_block(s->w2, block));
    for (; block < end; block++) {
        size_t first = block * MATVEC_ROWS, n = matvec_block(s->w, block).n;
        block_sums(s, s->w, block, end, sum);
        if (s->w2)
            block_sums(s, s->w2, block, end, sum2);
        for (size_t i = 0; i < s->x->shape[0]; i++) {
            float *y = (float *)tensor_row(s->y, i) + first;
            if (s->w2) {
                finish_swiglu(s->finish.round, 0, n, y, sum + i * MATVEC_ROWS, sum2 + i * MATVEC_ROWS);
            } else {
                finish_linear(&s->finish, first, n, sum + i * MATVEC_ROWS);
                memcpy(y, sum + i * MATVEC_ROWS, n * sizeof *y);
            }
        }
    }
}

static void stream(struct run *run, struct stream *s)
{
    size_t n_blocks = matvec_blocks(s->y->shape[1]), whole[] = {0, n_blocks};
    if (s->x->shape[0] == 0)
        return;
    s->input = SIMD_NAME(matvec_input)(s->x->data, s->x->stride[0], s->x->shape[0], s->x->shape[1]);
    if (s->w->shape[0] * s->w->shape[1] <= SMALL_WEIGHTS) {
        s->starts = whole;
        stream_task(s, 0, 0);
        return;
    }
    struct arena_mark mark = arena_save(run->arena);
    size_t *starts = run_scratch(run, n_blocks + 1, sizeof *starts);
    s->starts = starts;
    if (starts)
        pool_run(run->pool, matvec_runs(n_blocks, pool_threads(run->pool), starts), stream_task, s);
    arena_restore(run->arena, mark);
}

/* ---- many ------------------------------------------------------------------------------------------------------ */

static void finish_linear_row(const struct gemm_job *job, size_t row, size_t col, size_t n_cols, float *c,
                              const float *c2)
{
    (void)row, (void)c2;
    finish_linear(job->ctx, col, n_cols, c);
}

struct swiglu_job {
    struct tensor *y;
    bool round;
};

static void finish_swiglu_row(const struct gemm_job *job, size_t row, size_t col, size_t n_cols, float *c,
                              const float *c2)
{
    const struct swiglu_job *s = job->ctx;
    finish_swiglu(s->round, 0, n_cols, (float *)tensor_row(s->y, row) + col, c, c2);
}

/* ---- the operations --------------------------------------------------------------------------------------------- */

void SIMD_NAME(linear)(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
                       const struct tensor *bias, enum epilogue epilogue)
{
    struct finish finish = {.bias = bias, .epilogue = epilogue, .round = run->act == FATHOM_BF16};
    if (x->shape[0] <= MATVEC_MAX_M) {
        struct stream s = {.y = y, .x = x, .w = w, .finish = finish};
        stream(run, &s);
        return;
    }
    struct gemm_job job = {.m = x->shape[0],
                           .n = y->shape[1],
                           .k = x->shape[1],
                           .w = w,
                           .x = x->data,
                           .x_stride = x->stride[0],
                           .finish = finish_linear_row,
                           .ctx = &finish,
                           .c = y->data,
                           .c_stride = y->stride[0]};
    SIMD_NAME(gemm)(run, &job, 1);
}

void SIMD_NAME(swiglu)(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *gate,
                       const struct tensor *up)
{
    bool round = run->act == FATHOM_BF16;
    if (x->shape[0] <= MATVEC_MAX_M) {
        struct stream s = {.y = y, .x = x, .w = gate, .w2 = up, .finish = {.round = round}};
        stream(run, &s);
        return;
    }
    struct swiglu_job s = {.y = y, .round = round};
    struct gemm_job job = {.m = x->shape[0],
                           .n = y->shape[1],
                           .k = x->shape[1],
                           .w = gate,
                           .w2 = up,
                           .x = x->data,
                           .x_stride = x->stride[0],
                           .finish = finish_swiglu_row,
                           .ctx = &s};
    SIMD_NAME(gemm)(run, &job, 1);
}
