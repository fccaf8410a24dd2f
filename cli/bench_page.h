/* A page to time: drawn, not read from a file, so that the benchmark needs nothing and is the same everywhere. */
#ifndef FATHOM_CLI_BENCH_PAGE_H
#define FATHOM_CLI_BENCH_PAGE_H

#include <stdint.h>

/* Black capitals on white, in lines of words between margins. [height, width, 3] u8, the caller's to free; NULL when
 * memory is short. Sides from 64. */
uint8_t *bench_page(int width, int height);

#endif
