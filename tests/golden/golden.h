/* Looking up golden vectors and measuring the distance from them. */
#ifndef FATHOM_TESTS_GOLDEN_H
#define FATHOM_TESTS_GOLDEN_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

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

#endif
