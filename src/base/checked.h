/* Arithmetic on untrusted sizes: true when the result fits, and then *out holds it. */
#ifndef FATHOM_BASE_CHECKED_H
#define FATHOM_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>

static inline bool size_mul(size_t a, size_t b, size_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool size_add(size_t a, size_t b, size_t *out) { return !__builtin_add_overflow(a, b, out); }

#endif
