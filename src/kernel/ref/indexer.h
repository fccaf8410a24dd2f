/* What index_topk does to one query, shared by all levels. */
#ifndef FATHOM_KERNEL_REF_INDEXER_H
#define FATHOM_KERNEL_REF_INDEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* chosen [top_k]: the indices of the top_k highest of n scores, ties to the lower index, ascending; -1 behind them when
 * there are fewer. False when a score is NaN. Takes O(n) time. */
bool choose_highest(int32_t *chosen, const float *scores, size_t n, size_t top_k);

#endif
