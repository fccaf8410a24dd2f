/* C [m, n] = A [m, k] B [n, k]^T, float32 sums. Every output is one chain of fused multiply-adds over ascending k: a
 * block of k starts from what the block before it left in C.
 *
 * A task owns some rows and a group of panels of NR outputs. For each block of up to KC_MAX values of k:
 *
 *     the group's weights are turned and widened to B [panel][k][NR]     thread's scratch, in L2: 768 KiB (AVX2: 384)
 *     for each MR rows: the rows are copied to A [MR][k]                 thread's scratch, in L1: 37 KiB (AVX2: 18)
 *         for each panel: MR x NR sums in registers over the block       B streams from L2, A is read by broadcasts
 *
 * so nothing is kept packed and A may be made on the fly. One pair of B vectors serves MR rows, 24 multiply-adds with
 * AVX-512 (12 x 32), 12 with AVX2 (6 x 16). Limit: multiply-adds; bench/bench_gemm.c measures the share. */
#include "kernel/x86/gemm.h"

#include <string.h>

#include "kernel/x86/columns.h"

#define MR (SIMD_LANES == 16 ? 12 : 6)
#define NR (2 * SIMD_LANES)
#define KC_MAX 768
#define GROUP_PANELS 8
#define A_STRIDE (KC_MAX + 16) /* rows start in different sets of the first cache */
#define SCRATCH_ROWS 512       /* of a task whose partial sums wait in the thread's scratch */
#define TASKS_PER_THREAD 4     /* wanted, so that threads end at about the same time */
#define LINE_FLOATS 16
#define SMALL_PRODUCTS 500000 /* multiply-adds that are not worth waking another thread for */

struct task {
    const struct gemm_job *job;
    size_t row, n_rows, panel, n_panels;
};

struct plan {
    const struct gemm_job *jobs;
    size_t n_jobs;
    const struct task *tasks;
    float *scratch; /* a piece for each thread: B, A, sums */
    size_t scratch_floats;
};

#define B_FLOATS ((size_t)GROUP_PANELS * KC_MAX * NR)
#define A_FLOATS ((size_t)MR * A_STRIDE)
#define C_FLOATS ((size_t)SCRATCH_ROWS * GROUP_PANELS * NR)

static size_t ceil_div(size_t a, size_t b) { return (a + b - 1) / b; }
static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }
static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* ---- B ------------------------------------------------------------------------------------------------------- */

/* Columns [k, k + n_k) of up to SIMD_LANES rows at p: to[i * NR + lane]. */
SIMD_INLINE void pack_dtype(enum dtype dtype, float *to, const struct column_rows *rows, size_t n_rows, size_t k,
                            size_t n_k)
{
    const size_t per_call = columns_per_call(dtype);
    size_t i = 0;
    vf column[COLUMNS_MAX];
    struct column_state state = {.scale = v_zero()};
    if (n_rows == SIMD_LANES)
        for (; i + per_call <= n_k; i += per_call) {
            columns(dtype, column, rows, k + i, n_k - i, &state);
            UNROLL for (size_t j = 0; j < per_call; j++) v_store(to + (i + j) * NR, column[j]);
        }
    for (; i < n_k; i += per_call) {
        size_t n = smaller(per_call, n_k - i);
        columns_edge(dtype, column, rows, k + i, n_rows, n_k - i, &state);
        for (size_t j = 0; j < n; j++)
            v_store(to + (i + j) * NR, column[j]);
    }
}

typedef void pack_fn(float *to, const struct column_rows *rows, size_t n_rows, size_t k, size_t n_k);

#define PACK_DTYPE(name, dtype)                                                                                        \
    static void pack_##name(float *to, const struct column_rows *rows, size_t n_rows, size_t k, size_t n_k)            \
    {                                                                                                                  \
        pack_dtype(dtype, to, rows, n_rows, k, n_k);                                                                   \
    }

PACK_DTYPE(f32, DTYPE_F32)
PACK_DTYPE(f16, DTYPE_F16)
PACK_DTYPE(bf16, DTYPE_BF16)
PACK_DTYPE(q8_0, DTYPE_Q8_0)
PACK_DTYPE(f8, DTYPE_F8_E4M3)
PACK_DTYPE(f4, DTYPE_F4_E2M1)

static void pack_rows(float *to, const struct tensor *w, size_t row, size_t k, size_t n_k)
{
    static pack_fn *const by_dtype[] = {[DTYPE_F32] = pack_f32,   [DTYPE_F16] = pack_f16,    [DTYPE_BF16] = pack_bf16,
                                        [DTYPE_Q8_0] = pack_q8_0, [DTYPE_F8_E4M3] = pack_f8, [DTYPE_F4_E2M1] = pack_f4};
    size_t n_rows = row < w->shape[0] ? smaller(SIMD_LANES, w->shape[0] - row) : 0;
    const struct column_rows rows = column_rows(w, n_rows ? row : 0);
    by_dtype[w->dtype](to, &rows, n_rows, k, n_k);
}

/* Outputs of one panel: NR of w, or SIMD_LANES of w beside the same of w2. */
static size_t panel_outputs(const struct gemm_job *job) { return job->w2 ? SIMD_LANES : NR; }

static void pack_panel(float *to, const struct gemm_job *job, size_t panel, size_t k, size_t n_k)
{
    size_t row = panel * panel_outputs(job);
    pack_rows(to, job->w, row, k, n_k);
    pack_rows(to + SIMD_LANES, job->w2 ? job->w2 : job->w, job->w2 ? row : row + SIMD_LANES, k, n_k);
}

/* ---- the kernel ------------------------------------------------------------------------------------------------ */

/* c0, c1 [mr, SIMD_LANES] (+)= a [mr, n_k] b [n_k, NR]: the left and the right half of b. */
struct tile {
    float *c0, *c1;
    float *next;           /* where the next tile's c0 is: it is asked for early */
    size_t stride, n0, n1; /* n0, n1: columns that exist */
    const float *ahead[2]; /* two rows of A that the next block will copy: they are asked for on the way */
};

/* acc += *x * b. With AVX-512 the broadcast can be part of the multiply-add: one operation less to issue, which counts
 * when another hyper-thread has its half of the slots, for a load more. */
SIMD_INLINE void fma_broadcast(vf *acc, const float *x, vf b)
{
#if SIMD_LANES == 16
    __asm__("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(*acc) : "v"(b), "m"(*x));
#else
    *acc = v_fma(v_set(*x), b, *acc);
#endif
}

/* One k: acc[i] += a[i] b, for the two vectors of b. Of six rows one is broadcast apart, so that the loads (26 would be
 * 2.2 a cycle for 24 multiply-adds) are no more than two ports can do. */
SIMD_INLINE void micro_step(const size_t mr, vf acc[MR][2], const float *a, const float *b)
{
    vf b0 = v_load(b), b1 = v_load(b + SIMD_LANES);
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        if (SIMD_LANES == 16 && i % 6 != 0) {
            fma_broadcast(&acc[i][0], &a[i * A_STRIDE], b0);
            fma_broadcast(&acc[i][1], &a[i * A_STRIDE], b1);
        } else {
            vf x = v_set(a[i * A_STRIDE]);
            acc[i][0] = v_fma(x, b0, acc[i][0]);
            acc[i][1] = v_fma(x, b1, acc[i][1]);
        }
    }
}

/* mr rows are computed, n_rows of them exist; a has mr. */
SIMD_INLINE void micro(const size_t mr, const float *a, const float *b, size_t n_k, struct tile c, size_t n_rows,
                       bool first)
{
    vf acc[MR][2];
    bool full = n_rows == mr && c.n0 == SIMD_LANES && c.n1 == SIMD_LANES;
    if (first) {
        UNROLL for (size_t i = 0; i < mr; i++) acc[i][0] = acc[i][1] = v_zero();
    } else {
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            size_t row = i < n_rows ? i * c.stride : 0;
            acc[i][0] = v_load_n(c.c0 + row, c.n0);
            acc[i][1] = v_load_n(c.c1 + row, c.n1);
        }
    }
    for (size_t i = 0; i < n_rows; i++) {
        _mm_prefetch((const char *)(c.next + i * c.stride), _MM_HINT_T0);
        _mm_prefetch((const char *)(c.next + i * c.stride + (c.c1 - c.c0)), _MM_HINT_T0);
    }
    const float *end = a + n_k, *ahead0 = c.ahead[0], *ahead1 = c.ahead[1];
    for (; a + LINE_FLOATS <= end; a += LINE_FLOATS, b += LINE_FLOATS * NR) {
        _mm_prefetch((const char *)ahead0, _MM_HINT_T0);
        _mm_prefetch((const char *)ahead1, _MM_HINT_T0);
        ahead0 += LINE_FLOATS, ahead1 += LINE_FLOATS;
        for (size_t k = 0; k < LINE_FLOATS; k += 2) {
            micro_step(mr, acc, a + k, b + k * NR);
            micro_step(mr, acc, a + k + 1, b + (k + 1) * NR);
        }
    }
    for (; a < end; a++, b += NR)
        micro_step(mr, acc, a, b);
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        if (full) { /* masked stores are slow on some processors with AVX2 */
            v_store(c.c0 + i * c.stride, acc[i][0]);
            v_store(c.c1 + i * c.stride, acc[i][1]);
        } else if (i < n_rows) {
            v_store_n(c.c0 + i * c.stride, acc[i][0], c.n0);
            v_store_n(c.c1 + i * c.stride, acc[i][1], c.n1);
        }
    }
}

/* Rows are computed in thirds of MR. */
#define ROW_STEP (MR / 3)

static void micro_rows(size_t mr, const float *a, const float *b, size_t n_k, struct tile c, bool first)
{
    if (mr <= ROW_STEP)
        micro(ROW_STEP, a, b, n_k, c, mr, first);
    else if (mr <= 2 * ROW_STEP)
        micro(2 * ROW_STEP, a, b, n_k, c, mr, first);
    else
        micro(MR, a, b, n_k, c, mr, first);
}

/* ---- A ------------------------------------------------------------------------------------------------------- */

static const float *x_row(const struct gemm_job *job, size_t row)
{
    return job->x + (job->rows ? (size_t)job->rows[row] : row) * job->x_stride;
}

static void copy_row(const struct gemm_job *job, float *to, size_t row, size_t k, size_t n_k)
{
    if (job->x)
        memcpy(to, x_row(job, row) + k, n_k * sizeof *to);
    else
        job->read(job, to, row, k, n_k);
}

/* ---- a task ---------------------------------------------------------------------------------------------------- */

/* As few blocks of k as can be, of nearly equal length, starting where a walk over the columns can. */
static size_t block_of_k(const struct gemm_job *job)
{
    size_t unit = larger(column_block(job->w->dtype), job->w2 ? column_block(job->w2->dtype) : 1);
    return ceil_div(ceil_div(job->k, ceil_div(job->k, KC_MAX)), unit) * unit;
}

/* Where a row of the next block will be read; `none`, which is at hand, when there is no such place. */
static const float *ahead_row(const struct gemm_job *job, const struct task *t, size_t row, size_t k, const float *none)
{
    return job->x && row < t->n_rows ? x_row(job, t->row + row) + k : none;
}

static void run_task(const struct plan *plan, const struct task *t, int thread)
{
    const struct gemm_job *job = t->job;
    const size_t outputs = panel_outputs(job), col = t->panel * outputs;
    const size_t n_cols = smaller(t->n_panels * outputs, job->n - col);
    const size_t n_steps = ceil_div(t->n_rows, ROW_STEP), n_blocks = ceil_div(n_steps, MR / ROW_STEP);
    float *b = plan->scratch + (size_t)thread * plan->scratch_floats, *a = b + B_FLOATS, *c = a + A_FLOATS;
    size_t c_stride = GROUP_PANELS * NR, right = SIMD_LANES;
    if (job->c) {
        c = job->c + t->row * job->c_stride + col;
        c_stride = job->c_stride;
    }
    if (job->w2) /* sums for the second matrix lie right of all those for the first */
        right = GROUP_PANELS * SIMD_LANES;

    const size_t kc = block_of_k(job);
    for (size_t k = 0; k < job->k; k += kc) {
        size_t n_k = smaller(kc, job->k - k);
        for (size_t p = 0; p < t->n_panels; p++)
            pack_panel(b + p * kc * NR, job, t->panel + p, k, n_k);
        for (size_t block = 0; block < n_blocks; block++) {
            /* Even blocks of whole steps: 16 rows are 8 + 8, and only the last block can have rows to spare. */
            size_t row = block * n_steps / n_blocks * ROW_STEP;
            size_t mr = smaller((block + 1) * n_steps / n_blocks * ROW_STEP, t->n_rows) - row;
            for (size_t i = 0; i < mr; i++)
                copy_row(job, a + i * A_STRIDE, t->row + row + i, k, n_k);
            for (size_t i = mr; i % ROW_STEP != 0; i++) /* computed and dropped */
                memcpy(a + i * A_STRIDE, a, n_k * sizeof *a);
            for (size_t p = 0; p < t->n_panels; p++) {
                size_t at = p * outputs, left = smaller(SIMD_LANES, n_cols - at);
                struct tile tile = {.c0 = c + row * c_stride + at, .stride = c_stride, .n0 = left};
                tile.c1 = tile.c0 + right;
                tile.n1 = job->w2 ? left : smaller(SIMD_LANES, n_cols - at - left);
                tile.next = p + 1 < t->n_panels ? tile.c0 + outputs : c + (row + mr) * c_stride;
                tile.ahead[0] = ahead_row(job, t, row + mr + 2 * p, k, a);
                tile.ahead[1] = ahead_row(job, t, row + mr + 2 * p + 1, k, a);
                micro_rows(mr, a, b + p * kc * NR, n_k, tile, k == 0);
            }
            if (k + n_k == job->k && job->finish)
                for (size_t i = row; i < row + mr; i++)
                    job->finish(job, t->row + i, col, n_cols, c + i * c_stride, c + i * c_stride + right);
        }
    }
}

/* ---- a plan ---------------------------------------------------------------------------------------------------- */

static size_t n_panels_of(const struct gemm_job *job) { return ceil_div(job->n, panel_outputs(job)); }

struct cut {
    size_t n_groups, n_ranges;
};

/* How a job is cut into about n_wanted tasks: first by rows, then by outputs. Rows of one task share its packed
 * weights, so a cut by rows repeats the packing, and a cut by outputs the copying of A. */
static struct cut cut_job(const struct gemm_job *job, size_t n_wanted, int n_threads)
{
    size_t panels = n_panels_of(job);
    if (job->m == 0)
        return (struct cut){0};
    struct cut c = {.n_groups = ceil_div(panels, GROUP_PANELS), .n_ranges = 1};
    if (!job->c)
        c.n_ranges = ceil_div(job->m, SCRATCH_ROWS);
    while (c.n_groups * c.n_ranges < n_wanted) {
        if (job->m / c.n_ranges >= 256)
            c.n_ranges *= 2;
        else if (panels / c.n_groups >= 4)
            c.n_groups *= 2;
        else if (job->m / c.n_ranges >= 8 * MR)
            c.n_ranges *= 2;
        else if (panels / c.n_groups >= 2)
            c.n_groups *= 2;
        else
            break;
    }
    /* Nine long tasks keep two threads busy for as long as ten. */
    if (c.n_groups * c.n_ranges % (size_t)n_threads != 0 && n_wanted > 1 && job->m / c.n_ranges >= 1024)
        c.n_ranges *= 2;
    return c;
}

static double products(const struct gemm_job *job)
{
    return (double)job->m * (double)job->n * (double)job->k * (job->w2 ? 2 : 1);
}

/* Tasks that a job should give: its share of what keeps all threads busy. */
static size_t n_wanted(const struct gemm_job *job, double total, int n_threads)
{
    if (n_threads == 1 || total <= SMALL_PRODUCTS)
        return 1;
    return 1 + (size_t)(products(job) / total * TASKS_PER_THREAD * n_threads);
}

static double all_products(const struct gemm_job *jobs, size_t n_jobs)
{
    double total = 0;
    for (size_t i = 0; i < n_jobs; i++)
        total += products(&jobs[i]);
    return total;
}

static bool take_scratch(struct run *run, struct plan *plan, int n_threads)
{
    bool sums = false;
    for (size_t i = 0; i < plan->n_jobs; i++)
        sums |= !plan->jobs[i].c;
    plan->scratch_floats = B_FLOATS + A_FLOATS + (sums ? C_FLOATS : 0);
    plan->scratch = run_scratch(run, (size_t)n_threads * plan->scratch_floats, sizeof(float));
    return plan->scratch;
}

static void any_task(void *ctx, size_t task, int thread)
{
    const struct plan *plan = ctx;
    run_task(plan, &plan->tasks[task], thread);
}

void SIMD_NAME(gemm)(struct run *run, const struct gemm_job *jobs, size_t n_jobs)
{
    int n_threads = pool_threads(run->pool);
    double total = all_products(jobs, n_jobs);
    struct arena_mark mark = arena_save(run->arena);
    size_t n_tasks = 0, at = 0;
    for (size_t i = 0; i < n_jobs; i++) {
        struct cut cut = cut_job(&jobs[i], n_wanted(&jobs[i], total, n_threads), n_threads);
        n_tasks += cut.n_groups * cut.n_ranges;
    }
    struct plan plan = {.jobs = jobs, .n_jobs = n_jobs};
    struct task *tasks = run_scratch(run, n_tasks, sizeof *tasks);
    if (tasks && take_scratch(run, &plan, total <= SMALL_PRODUCTS ? 1 : n_threads)) {
        for (size_t i = 0; i < n_jobs; i++) {
            const struct gemm_job *job = &jobs[i];
            struct cut cut = cut_job(job, n_wanted(job, total, n_threads), n_threads);
            size_t panels = n_panels_of(job);
            for (size_t g = 0; g < cut.n_groups; g++)
                for (size_t r = 0; r < cut.n_ranges; r++) {
                    size_t row = r * job->m / cut.n_ranges, end = (r + 1) * job->m / cut.n_ranges;
                    size_t panel = g * panels / cut.n_groups, last = (g + 1) * panels / cut.n_groups;
                    tasks[at++] = (struct task){job, row, end - row, panel, last - panel};
                }
        }
        plan.tasks = tasks;
        if (total <= SMALL_PRODUCTS)
            for (size_t i = 0; i < n_tasks; i++)
                run_task(&plan, &tasks[i], 0);
        else
            pool_run(run->pool, n_tasks, any_task, &plan);
    }
    arena_restore(run->arena, mark);
}

/* A group of panels, through all jobs. */
static void column_task(void *ctx, size_t task, int thread)
{
    const struct plan *plan = ctx;
    struct task t = plan->tasks[task];
    for (size_t i = 0; i < plan->n_jobs; i++) {
        t.job = &plan->jobs[i];
        for (t.row = 0; t.row < t.job->m; t.row += t.n_rows) {
            t.n_rows = smaller(SCRATCH_ROWS, t.job->m - t.row);
            run_task(plan, &t, thread);
        }
    }
}

void SIMD_NAME(gemm_in_order)(struct run *run, const struct gemm_job *jobs, size_t n_jobs)
{
    int n_threads = pool_threads(run->pool);
    size_t panels = n_panels_of(&jobs[0]), n_tasks = ceil_div(panels, GROUP_PANELS);
    if (n_threads > 1)
        n_tasks = larger(n_tasks, smaller(panels, (size_t)n_threads * TASKS_PER_THREAD));
    struct arena_mark mark = arena_save(run->arena);
    struct plan plan = {.jobs = jobs, .n_jobs = n_jobs};
    struct task *tasks = run_scratch(run, n_tasks, sizeof *tasks);
    if (tasks && take_scratch(run, &plan, n_threads)) {
        for (size_t i = 0; i < n_tasks; i++) {
            tasks[i] = (struct task){.panel = i * panels / n_tasks};
            tasks[i].n_panels = (i + 1) * panels / n_tasks - tasks[i].panel;
        }
        plan.tasks = tasks;
        pool_run(run->pool, n_tasks, column_task, &plan);
    }
    arena_restore(run->arena, mark);
}
