/* What fathom bench measured, and how it is told. */
#ifndef FATHOM_CLI_BENCH_REPORT_H
#define FATHOM_CLI_BENCH_REPORT_H

#include "text.h"

#include <fathom.h>

#define BENCH_MAX_RUNS 1000

/* One number a run; the machine's limits have one more. */
struct samples {
    double value[BENCH_MAX_RUNS + 1];
    size_t n;
};

void samples_add(struct samples *s, double value);

struct bench_result {
    int width, height, n_runs;
    enum fathom_dtype dtype;
    struct fathom_machine machine;          /* the last measurement: its names and counts */
    struct fathom_stats stats;              /* of the last page: its counts               */
    struct samples fma, memory;             /* multiply-adds and bytes a second           */
    struct samples vision, prefill, decode; /* ms                                         */
};

/* Both sort the samples, and append to out. */
void bench_table(struct bench_result *b, struct text *out);
void bench_json(struct bench_result *b, struct text *out);

#endif
