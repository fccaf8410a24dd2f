/* How it works. A run is published as one 64-bit word `left` = run number << 32 | tasks not yet taken. A thread takes a
 * task by lowering the word with compare-and-swap, so a thread that is late cannot take a task of a later run with the
 * arguments of an earlier one; and a thread that was asleep or off its processor is not waited for unless it holds a
 * task. `done` counts finished tasks; the caller returns when it reaches n_tasks. */
#include "base/pool.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 1024
#define BATCH_MAX 0x40000000u /* tasks in one published run */

/* How long an idle thread watches before it sleeps. Longer than the gaps between the operations of a decode step,
 * shorter than the time slices of whoever else wants the processor. With more threads than processors, watching only
 * delays the thread that is watched. */
#define SPIN_NS 10000
#define SPIN_NS_CROWDED 500

struct worker {
    struct pool *pool;
    pthread_t thread;
    int index;
};

/* The words that different threads write lie in cache lines of their own. */
struct pool {
    _Alignas(64) atomic_uint_fast64_t left;
    _Alignas(64) _Atomic uint32_t done;
    _Atomic uint32_t caller_sleeps;
    _Alignas(64) _Atomic uint32_t run; /* number of the newest run; idle threads watch it and sleep on it */
    _Atomic uint32_t n_tasks;
    _Atomic(pool_fn *) fn;
    _Atomic(void *) ctx;
    _Atomic size_t first;
    atomic_bool quit;
    _Alignas(64) _Atomic uint32_t n_sleeping;
    _Atomic int caller_cpu; /* where the caller was when it last woke threads */
    _Alignas(64) int n_threads;
    int n_started;
    long spin_ns;
    struct worker *workers; /* owned, n_threads - 1 */
};

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int n)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

static void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

/* Watches *word until it differs from value; false when spin_ns passed first. */
static bool spin_while_equal(_Atomic uint32_t *word, uint32_t value, long spin_ns)
{
    long start = 0;
    for (unsigned i = 1;; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != value)
            return true;
        cpu_relax();
        if (i % 8 == 0) {
            long now = now_ns();
            if (start == 0)
                start = now;
            else if (now - start > spin_ns)
                return false;
        }
    }
}

/* Takes and runs tasks of the newest run until none is left. The arguments are read before the swap that proves them
 * to belong to the run: the caller does not replace them while a task is untaken or unfinished. */
static void work(struct pool *p, int thread)
{
    uint_fast64_t left = atomic_load_explicit(&p->left, memory_order_acquire);
    while ((uint32_t)left != 0) {
        pool_fn *fn = atomic_load_explicit(&p->fn, memory_order_relaxed);
        void *ctx = atomic_load_explicit(&p->ctx, memory_order_relaxed);
        size_t first = atomic_load_explicit(&p->first, memory_order_relaxed);
        uint32_t n_tasks = atomic_load_explicit(&p->n_tasks, memory_order_relaxed), task = n_tasks - (uint32_t)left;
        if (!atomic_compare_exchange_weak_explicit(&p->left, &left, left - 1, memory_order_acq_rel,
                                                   memory_order_acquire))
            continue;
        fn(ctx, first + task, thread);
        /* Sequentially consistent with the caller's store to caller_sleeps: one of the two sees the other. */
        if (atomic_fetch_add(&p->done, 1) + 1 == n_tasks && atomic_load(&p->caller_sleeps))
            futex_wake(&p->done, 1);
        left = atomic_load_explicit(&p->left, memory_order_acquire);
    }
}

/* A virtual machine's idle processors can look taken to its scheduler, which then wakes a thread on the processor of the
 * one that woke it and leaves it there for long. The thread steps aside: a moment without that processor in its set. */
static void leave_processor(int cpu)
{
    cpu_set_t allowed, others;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || cpu < 0 || cpu >= CPU_SETSIZE)
        return;
    others = allowed;
    CPU_CLR(cpu, &others);
    if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0)
        sched_setaffinity(0, sizeof allowed, &allowed);
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct pool *p = w->pool;
    uint32_t seen = 0;
    for (;;) {
        if (!spin_while_equal(&p->run, seen, p->spin_ns)) {
            atomic_fetch_add(&p->n_sleeping, 1); /* before the kernel compares *run; the caller stores run first */
            futex_wait(&p->run, seen);
            atomic_fetch_sub(&p->n_sleeping, 1);
            int caller_cpu = atomic_load_explicit(&p->caller_cpu, memory_order_relaxed);
            if (sched_getcpu() == caller_cpu)
                leave_processor(caller_cpu);
        }
        seen = atomic_load_explicit(&p->run, memory_order_acquire);
        if (atomic_load_explicit(&p->quit, memory_order_relaxed))
            return NULL;
        work(p, w->index);
    }
}

enum fathom_status pool_create(int n_threads, struct pool **out, struct fathom_err *err)
{
    *out = NULL;
    if (n_threads < 1 || n_threads > MAX_THREADS)
        return fail(err, FATHOM_EINVAL, "%d threads asked for, 1 to %d are possible", n_threads, MAX_THREADS);
    struct pool *p = aligned_alloc(_Alignof(struct pool), sizeof *p);
    if (!p)
        return fail_nomem(err, sizeof *p, "the thread pool");
    memset(p, 0, sizeof *p);
    p->n_threads = n_threads;
    p->spin_ns = n_threads <= pool_default_threads() ? SPIN_NS : SPIN_NS_CROWDED;
    p->workers = calloc((size_t)n_threads, sizeof *p->workers);
    if (!p->workers) {
        free(p);
        return fail_nomem(err, (size_t)n_threads * sizeof(struct worker), "the thread pool");
    }

    /* Signals are for the program's own threads, but for those that a thread brings on itself: blocked, they would kill
     * the program past its handler. */
    static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t others, old;
    sigfillset(&others);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&others, own[i]);
    pthread_sigmask(SIG_SETMASK, &others, &old);
    int error = 0;
    for (int i = 1; i < n_threads && !error; i++) {
        struct worker *w = &p->workers[i - 1];
        *w = (struct worker){.pool = p, .index = i};
        error = pthread_create(&w->thread, NULL, worker_main, w);
        if (!error)
            p->n_started++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (error) {
        int n = p->n_started;
        pool_destroy(p);
        return fail(err, FATHOM_ENOMEM, "thread %d of %d cannot be started: %s", n + 2, n_threads, strerror(error));
    }
    *out = p;
    return FATHOM_OK;
}

void pool_destroy(struct pool *p)
{
    if (!p)
        return;
    atomic_store(&p->quit, true);
    atomic_fetch_add(&p->run, 1);
    futex_wake(&p->run, INT_MAX);
    for (int i = 0; i < p->n_started; i++)
        pthread_join(p->workers[i].thread, NULL);
    free(p->workers);
    free(p);
}

int pool_threads(const struct pool *p) { return p->n_threads; }

static void run_batch(struct pool *p, size_t first, uint32_t n_tasks, pool_fn *fn, void *ctx)
{
    uint32_t run = atomic_load_explicit(&p->run, memory_order_relaxed) + 1;
    /* `left` is still 0 tasks of the last run, so no thread passes its swap until it is stored below. */
    atomic_store_explicit(&p->fn, fn, memory_order_relaxed);
    atomic_store_explicit(&p->ctx, ctx, memory_order_relaxed);
    atomic_store_explicit(&p->first, first, memory_order_relaxed);
    atomic_store_explicit(&p->n_tasks, n_tasks, memory_order_relaxed);
    atomic_store_explicit(&p->done, 0, memory_order_relaxed);
    atomic_store_explicit(&p->left, (uint_fast64_t)run << 32 | n_tasks, memory_order_release);
    atomic_store(&p->run, run);
    if (atomic_load(&p->n_sleeping)) {
        atomic_store_explicit(&p->caller_cpu, sched_getcpu(), memory_order_relaxed);
        futex_wake(&p->run, n_tasks < INT_MAX ? (int)n_tasks - 1 : INT_MAX);
    }
    work(p, 0);

    for (uint32_t done; (done = atomic_load_explicit(&p->done, memory_order_acquire)) != n_tasks;) {
        if (spin_while_equal(&p->done, done, p->spin_ns))
            continue;
        atomic_store(&p->caller_sleeps, 1);
        done = atomic_load(&p->done);
        if (done != n_tasks)
            futex_wait(&p->done, done);
        atomic_store(&p->caller_sleeps, 0);
    }
}

void pool_run(struct pool *p, size_t n_tasks, pool_fn *fn, void *ctx)
{
    if (p->n_threads == 1 || n_tasks <= 1) {
        for (size_t i = 0; i < n_tasks; i++)
            fn(ctx, i, 0);
        return;
    }
    for (size_t first = 0; first < n_tasks; first += BATCH_MAX) {
        size_t n = n_tasks - first < BATCH_MAX ? n_tasks - first : BATCH_MAX;
        run_batch(p, first, (uint32_t)n, fn, ctx);
    }
}

/* ---- how many threads --------------------------------------------------------------------------------------- */

static int affinity_count(void)
{
    for (int n = 1024; n <= 1 << 20; n *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)n);
        if (!set)
            return 1;
        int rc = sched_getaffinity(0, CPU_ALLOC_SIZE((size_t)n), set), error = errno;
        int count = rc == 0 ? CPU_COUNT_S(CPU_ALLOC_SIZE((size_t)n), set) : 0;
        CPU_FREE(set);
        if (rc == 0)
            return count;
        if (error != EINVAL) /* EINVAL: the kernel's set is larger */
            return 1;
    }
    return 1;
}

/* Whole processors of the quota in a cgroup v2 cpu.max ("max 100000" or "150000 100000"), rounded up; INT_MAX: none. */
static int quota_of_file(const char *path)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return INT_MAX;
    long quota, period;
    int n = fscanf(f, "%ld %ld", &quota, &period);
    fclose(f);
    if (n != 2 || quota <= 0 || period <= 0)
        return INT_MAX;
    long cpus = (quota - 1) / period + 1;
    return cpus < INT_MAX ? (int)cpus : INT_MAX;
}

/* The smallest quota on the way from this process's group to the root. */
static int cgroup_quota(void)
{
    char line[PATH_MAX], group[PATH_MAX] = "", path[2 * PATH_MAX];
    FILE *f = fopen("/proc/self/cgroup", "re");
    if (!f)
        return INT_MAX;
    while (fgets(line, sizeof line, f))
        if (strncmp(line, "0::/", 4) == 0)
            snprintf(group, sizeof group, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    fclose(f);
    int quota = INT_MAX;
    for (;;) {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
        int q = quota_of_file(path);
        quota = q < quota ? q : quota;
        char *slash = strrchr(group, '/');
        if (!slash)
            return quota;
        *slash = '\0';
    }
}

int pool_default_threads(void)
{
    int n = affinity_count(), quota = cgroup_quota();
    n = n < quota ? n : quota;
    n = n < MAX_THREADS ? n : MAX_THREADS;
    return n < 1 ? 1 : n;
}
