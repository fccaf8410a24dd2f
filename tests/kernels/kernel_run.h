/* For tests of operations: runs at every level of this processor, and matrices whose rows lie between canaries. */
#ifndef TESTS_KERNELS_KERNEL_RUN_H
#define TESTS_KERNELS_KERNEL_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "kernel/kernel.h" /* before cmocka.h, which has a macro fail() */

#include <cmocka.h>

static const char *const kernel_levels[] = {"ref", "avx2", "avx512"};
#define N_KERNEL_LEVELS (sizeof kernel_levels / sizeof *kernel_levels)

struct kernel_run {
    struct run run;
    struct arena arena;
};

/* False when this processor lacks the level. */
static inline bool kernel_run_init(struct kernel_run *k, const char *level, int n_threads, enum fathom_dtype act)
{
    const struct kernels *kernels = kernels_select(level);
    if (!kernels || strcmp(kernels->name, level) != 0)
        return false;
    memset(k, 0, sizeof *k);
    arena_init(&k->arena, (size_t)1 << 30);
    k->run.kernels = kernels;
    k->run.arena = &k->arena;
    k->run.act = act;
    assert_int_equal(pool_create(n_threads, &k->run.pool, NULL), FATHOM_OK);
    return true;
}

/* The operations succeeded and gave their scratch back. */
static inline void kernel_run_finish(struct kernel_run *k)
{
    assert_string_equal(k->run.err.message, "");
    assert_true(run_ok(&k->run));
    assert_int_equal(k->arena.used_bytes, 0);
    pool_destroy(k->run.pool);
    arena_release(&k->arena);
}

#define CANARY 0x7fc0dea1u /* a NaN: what reads it shows in the result */
#define CANARY_FLOATS 16

struct matrix {
    struct tensor t; /* f32 [rows, cols], `gap` floats between the rows */
    float *block;
    size_t n_block;
};

static inline struct matrix matrix_alloc(size_t rows, size_t cols, size_t gap)
{
    struct matrix m = {.n_block = rows * (cols + gap) + 2 * CANARY_FLOATS};
    m.block = malloc(m.n_block * sizeof *m.block);
    assert_non_null(m.block);
    for (size_t i = 0; i < m.n_block; i++)
        m.block[i] = f32_from_bits(CANARY);
    m.t = tensor_2d(DTYPE_F32, m.block + CANARY_FLOATS, rows, cols);
    m.t.stride[0] = cols + gap;
    return m;
}

/* Between -1 and 1, with 24 bits. */
static inline float random_f32(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = *state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (float)((z ^ z >> 31) >> 40) * 0x1p-23f - 1.0f;
}

/* Values of a bf16 run are representable in bf16. */
static inline struct matrix matrix_random(size_t rows, size_t cols, size_t gap, float amp, enum fathom_dtype act,
                                          uint64_t seed)
{
    struct matrix m = matrix_alloc(rows, cols, gap);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++) {
            float x = amp * random_f32(&seed);
            ((float *)tensor_row(&m.t, r))[c] = act == FATHOM_BF16 ? bf16_round(x) : x;
        }
    return m;
}

static inline float *matrix_at(const struct matrix *m, size_t row, size_t col)
{
    return (float *)tensor_row(&m->t, row) + col;
}

static inline struct matrix matrix_copy(const struct matrix *from)
{
    struct matrix m = *from;
    m.block = malloc(m.n_block * sizeof *m.block);
    assert_non_null(m.block);
    memcpy(m.block, from->block, m.n_block * sizeof *m.block);
    m.t.data = m.block + CANARY_FLOATS;
    return m;
}

static inline void matrix_free(struct matrix *m)
{
    free(m->block);
    m->block = NULL;
}

/* Nothing was written beside the rows. */
static inline void assert_canaries(const struct matrix *m)
{
    size_t stride = m->t.stride[0], cols = m->t.shape[1];
    for (size_t i = 0; i < m->n_block; i++) {
        bool inside = i >= CANARY_FLOATS && i < m->n_block - CANARY_FLOATS && (i - CANARY_FLOATS) % stride < cols;
        if (!inside && f32_bits(m->block[i]) != CANARY)
            fail_msg("a canary was overwritten, %zu floats into the block", i);
    }
}

/* The same bits, except that any NaN equals any other: which operand's payload survives is the compiler's choice. */
static inline void assert_same_bits(const struct matrix *got, const struct matrix *expected, const char *what)
{
    for (size_t r = 0; r < expected->t.shape[0]; r++)
        for (size_t c = 0; c < expected->t.shape[1]; c++) {
            float a = *matrix_at(got, r, c), b = *matrix_at(expected, r, c);
            if (f32_bits(a) != f32_bits(b) && !(a != a && b != b))
                fail_msg("%s: row %zu column %zu is %.9g (%08x), expected %.9g (%08x)", what, r, c, (double)a,
                         f32_bits(a), (double)b, f32_bits(b));
        }
}

#endif
