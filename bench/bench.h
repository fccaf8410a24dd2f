/* For benchmarks: candidates run in interleaved rounds with the machine's own peaks, so that a busy or throttled moment
 * meets them all; medians and spreads are reported, beside the share of the peak measured in the same round. */
#ifndef FATHOM_BENCH_BENCH_H
#define FATHOM_BENCH_BENCH_H

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "kernel/kernel.h"
#include "kernel/peak.h"

#define BENCH_MAX_ROUNDS 64

struct samples {
    double value[BENCH_MAX_ROUNDS];
    size_t n;
};

static inline void samples_add(struct samples *s, double value)
{
    if (s->n < BENCH_MAX_ROUNDS)
        s->value[s->n++] = value;
}

static inline int samples_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value below which a share q of the samples lies: 0.5 is the median. */
static inline double samples_quantile(const struct samples *s, double q)
{
    struct samples sorted = *s;
    if (s->n == 0)
        return 0;
    qsort(sorted.value, s->n, sizeof *sorted.value, samples_compare);
    return sorted.value[(size_t)(q * (double)(s->n - 1) + 0.5)];
}

static inline double samples_median(const struct samples *s) { return samples_quantile(s, 0.5); }

/* Half the distance between the quartiles, in percent of the median. */
static inline double samples_spread(const struct samples *s)
{
    return 50 * (samples_quantile(s, 0.75) - samples_quantile(s, 0.25)) / samples_median(s);
}

/* Ends the program with the message: a benchmark has nobody to report to. */
static inline void bench_check(enum fathom_status status, const struct fathom_err *err)
{
    if (status) {
        fprintf(stderr, "%s\n", err->message);
        exit(1);
    }
}

/* A run at the best level up to isa (NULL: any), with its own pool and arena, for the life of the program. */
static inline struct run bench_run(const char *isa, int n_threads)
{
    struct fathom_err err = {0};
    struct run run = {.kernels = kernels_select(isa), .arena = malloc(sizeof *run.arena)};
    if (!run.kernels || !run.arena) {
        fprintf(stderr, "unknown level '%s', or out of memory\n", isa ? isa : "");
        exit(2);
    }
    arena_init(run.arena, SIZE_MAX);
    bench_check(pool_create(n_threads, &run.pool, &err), &err);
    return run;
}

/* FLOP/s and bytes/s of the run's threads, in about 10 ms and 100 ms. */
static inline double bench_fma_peak(const struct run *run)
{
    struct fathom_err err = {0};
    double flop_s = 0;
    bench_check(peak_fma(run->pool, run->kernels->name, 0.01, &flop_s, &err), &err);
    return flop_s;
}

static inline double bench_read_peak(const struct run *run)
{
    struct fathom_err err = {0};
    double bytes_s = 0;
    bench_check(peak_read(run->pool, run->kernels->name, 0.1, (size_t)1 << 30, &bytes_s, &err), &err);
    return bytes_s;
}

/* Values between -amp and amp. */
static inline void bench_fill(float *x, size_t n, float amp, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = amp * ((float)(seed >> 40) * 0x1p-23f - 1.0f);
    }
}

static inline struct tensor bench_matrix(struct run *run, size_t rows, size_t cols, float amp, uint64_t seed)
{
    struct tensor t = run_alloc(run, rows, cols);
    bench_check(run->err.status, &run->err);
    bench_fill(t.data, rows * cols, amp, seed);
    return t;
}

#endif
