#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

struct job {
    int n_threads;
    size_t n;
    uint32_t *hits;    /* how often each task ran: written without atomics, so that tsan sees a task run twice */
    uint32_t value;    /* what the tasks must see */
    atomic_uint wrong; /* tasks that saw another value or a bad thread index */
};

static void count(void *ctx, size_t task, int thread)
{
    struct job *j = ctx;
    if (task >= j->n || thread < 0 || thread >= j->n_threads) {
        j->wrong++;
        return;
    }
    j->hits[task] += j->value;
}

static void every_task_runs_once(void **state)
{
    (void)state;
    for (int n_threads = 1; n_threads <= 8; n_threads++) {
        struct pool *pool;
        assert_int_equal(pool_create(n_threads, &pool, NULL), FATHOM_OK);
        assert_int_equal(pool_threads(pool), n_threads);
        for (uint32_t round = 0; round < 300; round++) {
            /* The number of tasks goes up and down: a late thread must not mix one run with another. */
            struct job j = {.n_threads = n_threads, .n = round * 37 % 41, .value = round + 1};
            j.hits = calloc(j.n + 1, sizeof *j.hits);
            assert_non_null(j.hits);
            pool_run(pool, j.n, count, &j);
            assert_int_equal(j.wrong, 0);
            for (size_t i = 0; i < j.n; i++)
                assert_int_equal(j.hits[i], round + 1);
            free(j.hits);
        }
        pool_destroy(pool);
    }
}

static void pool_wakes_after_sleep(void **state)
{
    (void)state;
    struct pool *pool;
    uint32_t hits[4] = {0};
    struct job j = {.n_threads = 4, .n = 4, .hits = hits, .value = 1};
    assert_int_equal(pool_create(4, &pool, NULL), FATHOM_OK);
    for (int i = 0; i < 20; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 500000 * (i % 3)}, NULL);
        pool_run(pool, 4, count, &j);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(hits[i], 20);
    pool_destroy(pool);
}

static void slow(void *ctx, size_t task, int thread)
{
    (void)thread;
    if (task != 0)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    ((uint32_t *)ctx)[task]++;
}

static void caller_sleeps_for_slow_tasks(void **state)
{
    (void)state;
    struct pool *pool;
    uint32_t hits[3] = {0};
    assert_int_equal(pool_create(3, &pool, NULL), FATHOM_OK);
    for (int i = 0; i < 20; i++)
        pool_run(pool, 3, slow, hits);
    for (int i = 0; i < 3; i++)
        assert_int_equal(hits[i], 20);
    pool_destroy(pool);
}

static void idle_pool_uses_no_processor(void **state)
{
    (void)state;
    struct pool *pool;
    uint32_t hits[4] = {0};
    struct job j = {.n_threads = 4, .n = 4, .hits = hits, .value = 1};
    assert_int_equal(pool_create(4, &pool, NULL), FATHOM_OK);
    pool_run(pool, 4, count, &j);
    struct timespec t0, t1;
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t0);
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t1);
    double used = (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) * 1e-9;
    assert_true(used < 0.02);
    pool_destroy(pool);
}

struct look {
    atomic_int *arrived;
    sigset_t *masks;
};

/* Waits for the other task, so that the two run on two threads, and notes what its thread blocks. */
static void look_at_mask(void *ctx, size_t task, int thread)
{
    struct look *look = ctx;
    (void)thread;
    pthread_sigmask(SIG_SETMASK, NULL, &look->masks[task]);
    atomic_fetch_add(look->arrived, 1);
    while (atomic_load(look->arrived) < 2)
        sched_yield();
}

static void only_signals_of_others_are_blocked(void **state)
{
    (void)state;
    struct pool *pool;
    atomic_int arrived = 0;
    sigset_t masks[2];
    struct look look = {&arrived, masks};
    assert_int_equal(pool_create(2, &pool, NULL), FATHOM_OK);
    pool_run(pool, 2, look_at_mask, &look);
    int n_blocking_interrupts = 0;
    for (int i = 0; i < 2; i++) {
        n_blocking_interrupts += sigismember(&masks[i], SIGINT);
        assert_false(sigismember(&masks[i], SIGBUS)); /* of a mapped file that shrank: the program's handler says so */
        assert_false(sigismember(&masks[i], SIGSEGV));
    }
    assert_int_equal(n_blocking_interrupts, 1);
    pool_destroy(pool);
}

static void bad_counts_are_refused(void **state)
{
    (void)state;
    struct fathom_err err;
    struct pool *pool;
    assert_int_equal(pool_create(0, &pool, &err), FATHOM_EINVAL);
    assert_null(pool);
    assert_string_equal(err.message, "0 threads asked for, 1 to 1024 are possible");
    assert_int_equal(pool_create(-3, &pool, NULL), FATHOM_EINVAL);
    assert_int_equal(pool_create(100000, &pool, NULL), FATHOM_EINVAL);
    pool_destroy(NULL);
    assert_true(pool_default_threads() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_runs_once),
        cmocka_unit_test(pool_wakes_after_sleep),
        cmocka_unit_test(caller_sleeps_for_slow_tasks),
        cmocka_unit_test(idle_pool_uses_no_processor),
        cmocka_unit_test(only_signals_of_others_are_blocked),
        cmocka_unit_test(bad_counts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
