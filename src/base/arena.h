/* A stack of scratch memory: grows by blocks up to a limit, is released back to a mark, and knows its peak.
 * Not safe for several threads; per-thread scratch is taken from it before the threads start. */
#ifndef FATHOM_BASE_ARENA_H
#define FATHOM_BASE_ARENA_H

#include <stdbool.h>

#include "base/err.h"

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first                                    */
    size_t used_bytes;          /* allocated and not released                      */
    size_t peak_bytes;          /* highest used_bytes since arena_reset_peak       */
    size_t limit_bytes;         /* arena_alloc fails beyond                        */
    char *region;               /* addresses to hand out instead of blocks, or NULL */
    size_t backed_bytes;        /* of the region, that have memory behind them     */
    bool (*back)(void *ctx, size_t bytes, size_t *backed_bytes);
    void *back_ctx;
};

struct arena_mark {
    struct arena_block *block;
    size_t block_used, used_bytes;
};

#define ARENA_ALIGN 64

void arena_init(struct arena *a, size_t limit_bytes);
void arena_release(struct arena *a); /* frees everything; a may be reused */

/* An arena over limit_bytes addresses from region on, which it neither touches nor frees: a device's memory. back puts
 * memory behind at least the first `bytes` of them and says behind how many; false: there is none. */
void arena_init_region(struct arena *a, void *region, size_t limit_bytes,
                       bool (*back)(void *ctx, size_t bytes, size_t *backed_bytes), void *back_ctx);

/* 64-byte aligned, not cleared; NULL when the limit or the system says no. Zero bytes give a valid pointer. */
void *arena_alloc(struct arena *a, size_t bytes);

/* n * size with the product checked. */
void *arena_array(struct arena *a, size_t n, size_t size);

struct arena_mark arena_save(const struct arena *a);
void arena_restore(struct arena *a, struct arena_mark mark); /* newest block is kept for reuse */
void arena_reset_peak(struct arena *a);

#endif
