/* rope: see ref/rope.c for the definition. A task is some rows; the angles of a row are formed once for all its heads.
 * Limit: the cosines and sines, which come from the C library in double precision. Bits equal ref's. */
#include "kernel/ref/rope_table.h"
#include "kernel/x86/simd.h"
#include "kernel/x86/simd_ops.h"

#define TASK_ROWS 16

struct rope {
    const struct run *run;
    const struct tensor *x;
    size_t n_heads, half;
    const int32_t *pos;
    const double *frequencies;
    float *tables; /* [thread][2][half] */
};

SIMD_INLINE vf stored(vf x, const bool bf16) { return bf16 ? v_round_bf16(x) : x; }

SIMD_INLINE void rotate(float *low, float *high, const float *cosines, const float *sines, size_t half, const bool bf16)
{
    for (size_t j = 0; j < half; j += SIMD_LANES) {
        size_t n = half - j < SIMD_LANES ? half - j : SIMD_LANES;
        vf a = v_load_n(low + j, n), b = v_load_n(high + j, n);
        vf c = v_load_n(cosines + j, n), s = v_load_n(sines + j, n);
        v_store_n(low + j, stored(stored(a * c, bf16) - stored(b * s, bf16), bf16), n);
        v_store_n(high + j, stored(stored(b * c, bf16) + stored(a * s, bf16), bf16), n);
    }
}

static void rope_task(void *ctx, size_t task, int thread)
{
    const struct rope *a = ctx;
    size_t n = a->x->shape[0], first = task * TASK_ROWS, end = first + TASK_ROWS < n ? first + TASK_ROWS : n;
    float *cosines = a->tables + (size_t)thread * 2 * a->half, *sines = cosines + a->half;
    for (size_t r = first; r < end; r++) {
        rope_table(a->run, cosines, sines, a->frequencies, a->half, a->pos[r]);
        for (size_t h = 0; h < a->n_heads; h++) {
            float *low = (float *)tensor_row(a->x, r) + h * 2 * a->half;
            if (a->run->act == FATHOM_BF16)
                rotate(low, low + a->half, cosines, sines, a->half, true);
            else
                rotate(low, low + a->half, cosines, sines, a->half, false);
        }
    }
}

void SIMD_NAME(rope)(struct run *run, struct tensor *x, size_t n_heads, const int32_t *pos, float theta)
{
    struct arena_mark mark = arena_save(run->arena);
    struct rope a = {.run = run, .x = x, .n_heads = n_heads, .half = x->shape[1] / n_heads / 2, .pos = pos};
    double *frequencies = run_scratch(run, a.half, sizeof *frequencies);
    a.tables = run_scratch(run, (size_t)pool_threads(run->pool) * 2 * a.half, sizeof *a.tables);
    if (run_ok(run)) {
        rope_frequencies(frequencies, a.half, theta);
        a.frequencies = frequencies;
        pool_run(run->pool, (x->shape[0] + TASK_ROWS - 1) / TASK_ROWS, rope_task, &a);
    }
    arena_restore(run->arena, mark);
}
