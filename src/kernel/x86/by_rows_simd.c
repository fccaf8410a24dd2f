/* Operations of DeepSeek-V4 that are a small part of a layer and whose rows are independent: the loops of ref/, the rows
 * shared among the threads. */
#include "kernel/ref/ref_ops.h"
#include "kernel/x86/simd.h"
#include "kernel/x86/simd_ops.h"

#define ROWS 4 /* of a task */

static size_t n_tasks(size_t n_rows) { return (n_rows + ROWS - 1) / ROWS; }

static struct tensor task_rows(const struct tensor *t, size_t task)
{
    size_t first = task * ROWS, left = t->shape[0] - first;
    return tensor_rows(t, first, left < ROWS ? left : ROWS);
}

struct hyper {
    struct run *run;
    const struct tensor *h, *mix, *x, *m, *u;
    const struct hyper_weights *w;
    struct hyper_shape shape;
};

static void split_task(void *ctx, size_t task, int thread)
{
    const struct hyper *a = ctx;
    (void)thread;
    struct tensor h = task_rows(a->h, task), x = task_rows(a->x, task), m = task_rows(a->m, task), mix;
    if (a->mix)
        mix = task_rows(a->mix, task);
    hyper_split_ref(a->run, &h, a->mix ? &mix : NULL, &x, &m, a->w, a->shape);
}

void SIMD_NAME(hyper_split)(struct run *run, struct tensor *h, struct tensor *mix, const struct tensor *x,
                            const struct tensor *m, const struct hyper_weights *w, struct hyper_shape shape)
{
    struct hyper a = {.run = run, .h = h, .mix = mix, .x = x, .m = m, .w = w, .shape = shape};
    pool_run(run->pool, n_tasks(h->shape[0]), split_task, &a);
}

static void merge_task(void *ctx, size_t task, int thread)
{
    const struct hyper *a = ctx;
    (void)thread;
    struct tensor x = task_rows(a->x, task), u = task_rows(a->u, task), mix = task_rows(a->mix, task);
    hyper_merge_ref(a->run, &x, &u, &mix, a->shape.n_streams);
}

void SIMD_NAME(hyper_merge)(struct run *run, struct tensor *x, const struct tensor *u, const struct tensor *mix,
                            size_t n_streams)
{
    struct hyper a = {.run = run, .mix = mix, .x = x, .u = u, .shape = {.n_streams = n_streams}};
    pool_run(run->pool, n_tasks(u->shape[0]), merge_task, &a);
}

struct rotation {
    struct run *run;
    const struct tensor *x;
    size_t n_heads, n_pairs;
    const int32_t *pos;
    const float *frequencies;
    bool inverse;
};

static void rotate_task(void *ctx, size_t task, int thread)
{
    const struct rotation *a = ctx;
    (void)thread;
    struct tensor x = task_rows(a->x, task);
    rope_pairs_ref(a->run, &x, a->n_heads, a->pos + task * ROWS, a->frequencies, a->n_pairs, a->inverse);
}

void SIMD_NAME(rope_pairs)(struct run *run, struct tensor *x, size_t n_heads, const int32_t *pos,
                           const float *frequencies, size_t n_pairs, bool inverse)
{
    struct rotation a = {run, x, n_heads, n_pairs, pos, frequencies, inverse};
    pool_run(run->pool, n_tasks(x->shape[0]), rotate_task, &a);
}

struct compression {
    struct run *run;
    const struct tensor *y, *values, *scores, *ape;
    struct compress_shape shape;
};

/* The windows of a task begin with the window before them, when they overlap. */
static void compress_task(void *ctx, size_t task, int thread)
{
    const struct compression *a = ctx;
    (void)thread;
    struct tensor y = task_rows(a->y, task);
    struct compress_shape shape = a->shape;
    size_t first = task * ROWS + (shape.overlap && shape.has_previous);
    bool before = shape.overlap && first > 0;
    size_t rows = first - before, n = y.shape[0] + before;
    struct tensor values = tensor_rows(a->values, rows * shape.ratio, n * shape.ratio);
    struct tensor scores = tensor_rows(a->scores, rows * shape.ratio, n * shape.ratio);
    shape.has_previous = before;
    compress_ref(a->run, &y, &values, &scores, a->ape, shape);
}

void SIMD_NAME(compress)(struct run *run, struct tensor *y, const struct tensor *values, const struct tensor *scores,
                         const struct tensor *ape, struct compress_shape shape)
{
    struct compression a = {run, y, values, scores, ape, shape};
    pool_run(run->pool, n_tasks(y->shape[0]), compress_task, &a);
}

void SIMD_NAME(route)(struct run *run, const struct tensor *logits, const struct tensor *bias,
                      const struct tensor *table, const int32_t *tokens, size_t top_k, float scale, int32_t *ids,
                      float *weights)
{
    route_ref(run, logits, bias, table, tokens, top_k, scale, ids, weights);
}
