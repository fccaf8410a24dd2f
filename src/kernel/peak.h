/* Loops that do nothing but what a processor can do at most, for rooflines. */
#ifndef FATHOM_KERNEL_PEAK_H
#define FATHOM_KERNEL_PEAK_H

#include "base/err.h"
#include "base/pool.h"

/* What the pool's threads reach together with the instruction set called isa ("ref", "avx2", "avx512"): float32 fused
 * multiply-adds on registers (a multiply-add counts two), and reading memory of `bytes`, which should be several times
 * the last cache. Each takes about `seconds`; the best of short rounds counts. */
enum fathom_status peak_fma(struct pool *pool, const char *isa, double seconds, double *flop_s, struct fathom_err *err);
enum fathom_status peak_read(struct pool *pool, const char *isa, double seconds, size_t bytes, double *bytes_s,
                             struct fathom_err *err);

#endif
