/* x += y. Limit: memory. */
#include "kernel/x86/finish.h"
#include "kernel/x86/simd_ops.h"

#define TASK_ELEMENTS 32768

struct add_job {
    struct tensor *x;
    const struct tensor *y;
    bool round;
    size_t rows_per_task;
};

static void add_rows(void *ctx, size_t task, int thread)
{
    (void)thread;
    const struct add_job *job = ctx;
    size_t first = task * job->rows_per_task, n = job->x->shape[1];
    for (size_t row = first; row < job->x->shape[0] && row < first + job->rows_per_task; row++) {
        float *x = tensor_row(job->x, row);
        const float *y = tensor_row(job->y, row);
        size_t i = 0;
        for (; i + SIMD_LANES <= n; i += SIMD_LANES)
            v_store(x + i, v_stored(job->round, v_load(x + i) + v_load(y + i)));
        if (i < n)
            v_store_n(x + i, v_stored(job->round, v_load_n(x + i, n - i) + v_load_n(y + i, n - i)), n - i);
    }
}

void SIMD_NAME(add)(struct run *run, struct tensor *x, const struct tensor *y)
{
    size_t rows = x->shape[0], cols = x->shape[1];
    struct add_job job = {.x = x, .y = y, .round = run->act == FATHOM_BF16};
    job.rows_per_task = cols < TASK_ELEMENTS ? TASK_ELEMENTS / (cols ? cols : 1) : 1;
    pool_run(run->pool, (rows + job.rows_per_task - 1) / job.rows_per_task, add_rows, &job);
}
