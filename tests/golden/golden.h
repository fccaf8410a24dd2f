/* Looking up golden vectors and measuring the distance from them. */
#ifndef FATHOM_TESTS_GOLDEN_H
#define FATHOM_TESTS_GOLDEN_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "weights/safetensors.h" /* before cmocka.h, which has a macro fail() */

#include <cmocka.h>

static inline struct safetensors golden_open(const char *path)
{
    struct safetensors s;
    struct fathom_err err = {0};
    if (safetensors_open(&s, path, &err))
        fail_msg("%s", err.message);
    return s;
}

static inline const struct tensor *golden_get(const struct safetensors *s, const char *name)
{
    const struct safetensors_tensor *t = safetensors_find(s, name);
    if (!t)
        fail_msg("no golden tensor '%s'", name);
    return &t->tensor;
}

/* ||a - b|| / ||b|| */
static inline double relative_l2(const float *a, const float *b, size_t n)
{
    double difference = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        difference += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        norm += (double)b[i] * b[i];
    }
    return sqrt(difference / norm);
}

/* The golden rows of one stage of one view: every step-th row of [rows, dim]. */
static inline void golden_check_stage(const struct safetensors *s, const char *name, const struct tensor *stage,
                                      size_t view, size_t step, double limit)
{
    const struct tensor *want = golden_get(s, name);
    size_t rows = want->shape[1], dim = want->shape[2];
    float *got = malloc(rows * dim * sizeof *got);
    assert_non_null(got);
    assert_int_equal(stage->shape[1], dim);
    for (size_t r = 0; r < rows; r++)
        memcpy(got + r * dim, tensor_row(stage, r * step), dim * sizeof *got);
    double distance = relative_l2(got, (const float *)want->data + view * rows * dim, rows * dim);
    print_message("%-24s view %zu: %.2e (limit %.1e)\n", name, view, distance, limit);
    free(got);
    assert_true(distance <= limit); /* false for NaN */
}

#endif
