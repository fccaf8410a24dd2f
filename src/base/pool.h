/* A pool of threads that first spin and then sleep on a futex: a fork and join costs under a microsecond while the
 * pool is busy (a decode step is about a thousand of them), and an idle pool uses no processor.
 *
 * pool_run calls fn(ctx, task, thread) for every task in [0, n_tasks) and returns when all are done. The caller is
 * thread 0; thread < pool_threads(). Which thread gets which task is not fixed, so a result must depend on the task
 * alone. One caller at a time; fn must not call pool_run. */
#ifndef FATHOM_BASE_POOL_H
#define FATHOM_BASE_POOL_H

#include "base/err.h"

struct pool;
typedef void pool_fn(void *ctx, size_t task, int thread);

/* n_threads >= 1, the caller included; 1 starts no thread. */
enum fathom_status pool_create(int n_threads, struct pool **out, struct fathom_err *err);
void pool_destroy(struct pool *pool); /* NULL is fine */
int pool_threads(const struct pool *pool);
void pool_run(struct pool *pool, size_t n_tasks, pool_fn *fn, void *ctx);

/* Processors this process may run on (affinity and cgroup quota), at least 1. */
int pool_default_threads(void);

#endif
