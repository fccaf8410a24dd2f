/* Tells when a page's output repeats itself without end. */
#ifndef FATHOM_ENGINE_LOOP_DETECTOR_H
#define FATHOM_ENGINE_LOOP_DETECTOR_H

#include <stddef.h>
#include <stdint.h>

/* When the last 256 or more ids are at least four copies of one block of at most 512 ids: the number of ids up to the
 * end of the first copy; otherwise 0. A table of empty cells may well have four equal rows, but not 256 tokens of them
 * in a block that short without being one. */
size_t loop_detect(const int32_t *ids, size_t n);

#endif
