/* What DeepSeek-V4's published code rounds in what a sequence keeps (spec deepseek-v4 §2.6 to 2.8): keys as if they were
 * stored in FP8, the indexer's queries and keys in FP4. */
#ifndef FATHOM_NN_V4_ROUNDING_H
#define FATHOM_NN_V4_ROUNDING_H

#include <stdbool.h>
#include <stddef.h>

/* A window row or entry x [d], normed and rotated: to bfloat16, and all but the last n_rotated channels through E4M3 in
 * blocks of 64 with power-of-two scales. */
void v4_round_key(float *x, size_t d, size_t n_rotated);

/* An index query's head or an index key x [d], rotated: to bfloat16, turned by the Hadamard matrix of Sylvester's order over
 * sqrt(d), and through E2M1 in blocks of 32 with power-of-two scales. d is a power of two. */
void v4_round_index(float *x, size_t d);

/* Whether v4_round_index can take that width. */
bool v4_can_round_index(size_t d);

#endif
