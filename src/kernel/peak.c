#include "kernel/peak.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#if defined(FATHOM_X86)
#include "kernel/x86/peak_loops.h"
#endif

struct loops {
    double (*fma)(size_t n_rounds);
    void (*read)(const float *p, size_t n);
};

static double fma_loop_ref(size_t n_rounds)
{
    float acc[8] = {0};
    for (size_t r = 0; r < n_rounds; r++)
        for (int i = 0; i < 8; i++) {
            acc[i] = fmaf(acc[i], 0.999f, 1e-3f);
            __asm__ volatile("" : "+m"(acc[i]));
        }
    return 2.0 * 8 * (double)n_rounds;
}

static void read_loop_ref(const float *p, size_t n)
{
    float sum[8] = {0};
    for (size_t i = 0; i + 8 <= n; i += 8)
        for (size_t k = 0; k < 8; k++)
            sum[k] += p[i + k];
    for (int i = 0; i < 8; i++)
        __asm__ volatile("" : "+m"(sum[i]));
}

static struct loops select_loops(const char *isa)
{
#if defined(FATHOM_X86)
    if (strcmp(isa, "avx512") == 0)
        return (struct loops){peak_fma_loop_avx512, peak_read_loop_avx512};
    if (strcmp(isa, "avx2") == 0)
        return (struct loops){peak_fma_loop_avx2, peak_read_loop_avx2};
#endif
    (void)isa;
    return (struct loops){fma_loop_ref, read_loop_ref};
}

struct job {
    struct loops loops;
    size_t n_rounds, n_slice; /* floats a task reads */
    const float *data;
};

static void fma_task(void *ctx, size_t task, int thread)
{
    const struct job *job = ctx;
    (void)task, (void)thread;
    job->loops.fma(job->n_rounds);
}

static void read_task(void *ctx, size_t task, int thread)
{
    const struct job *job = ctx;
    (void)thread;
    job->loops.read(job->data + task * job->n_slice, job->n_slice);
}

/* The highest rate of rounds of `work` units within the time. */
static double best_rate(struct pool *pool, size_t n_tasks, pool_fn *fn, struct job *job, double seconds, double work)
{
    double best = 0;
    for (double end = clock_ms() + seconds * 1e3; clock_ms() < end;) {
        double start = clock_ms();
        pool_run(pool, n_tasks, fn, job);
        double rate = work / ((clock_ms() - start) * 1e-3);
        best = rate > best ? rate : best;
    }
    return best;
}

enum fathom_status peak_fma(struct pool *pool, const char *isa, double seconds, double *flop_s, struct fathom_err *err)
{
    struct job job = {.loops = select_loops(isa), .n_rounds = 1 << 20};
    size_t n_threads = (size_t)pool_threads(pool);
    (void)err;
    double flop = job.loops.fma(1) * (double)job.n_rounds;
    *flop_s = best_rate(pool, n_threads, fma_task, &job, seconds, flop * (double)n_threads);
    return FATHOM_OK;
}

enum fathom_status peak_read(struct pool *pool, const char *isa, double seconds, size_t bytes, double *bytes_s,
                             struct fathom_err *err)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return fail_nomem(err, bytes, "measuring the memory");
    memset(memory, 1, bytes);
    size_t n_tasks = 16 * (size_t)pool_threads(pool); /* more than threads: one that is late does not stop the others */
    struct job job = {.loops = select_loops(isa), .data = memory, .n_slice = bytes / sizeof(float) / n_tasks};
    *bytes_s = best_rate(pool, n_tasks, read_task, &job, seconds, (double)(job.n_slice * n_tasks * sizeof(float)));
    munmap(memory, bytes);
    return FATHOM_OK;
}
