#include "base/arena.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/checked.h"

#define BLOCK_MIN ((size_t)1 << 20)
#define BLOCK_GROWTH_MAX ((size_t)64 << 20)
#define HUGE_PAGE ((size_t)2 << 20)

struct arena_block {
    struct arena_block *older;
    size_t size, used; /* bytes, header included */
};

#define HEADER ((sizeof(struct arena_block) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN)

void arena_init(struct arena *a, size_t limit_bytes) { *a = (struct arena){.limit_bytes = limit_bytes}; }

void arena_init_region(struct arena *a, void *region, size_t limit_bytes,
                       bool (*back)(void *ctx, size_t bytes, size_t *backed_bytes), void *back_ctx)
{
    *a = (struct arena){.limit_bytes = limit_bytes, .region = region, .back = back, .back_ctx = back_ctx};
}

static void pop_block(struct arena *a)
{
    struct arena_block *b = a->blocks;
    a->blocks = b->older;
    free(b);
}

void arena_release(struct arena *a)
{
    while (a->blocks)
        pop_block(a);
    a->used_bytes = 0;
}

/* A block that holds at least `bytes`. Blocks double up to a point, so that a deep stack has few of them. */
static bool push_block(struct arena *a, size_t bytes)
{
    size_t older = a->blocks ? a->blocks->size : 0, want, size;
    if (!size_add(bytes, HEADER, &want))
        return false;
    size = older > BLOCK_GROWTH_MAX / 2 ? BLOCK_GROWTH_MAX : 2 * older;
    size = size < BLOCK_MIN ? BLOCK_MIN : size;
    size = size < want ? want : size;
    size_t align = size >= HUGE_PAGE ? HUGE_PAGE : ARENA_ALIGN;
    if (!size_add(size, align - 1, &size))
        return false;
    size = size / align * align;
    if (a->blocks && a->blocks->used == HEADER) /* too small and empty; no mark names it, see arena_save */
        pop_block(a);
    struct arena_block *b = aligned_alloc(align, size);
    if (!b)
        return false;
    if (align == HUGE_PAGE)
        madvise(b, size, MADV_HUGEPAGE); /* only advice: kernels walk these blocks with long strides */
    *b = (struct arena_block){.older = a->blocks, .size = size, .used = HEADER};
    a->blocks = b;
    return true;
}

static void *take(struct arena *a, size_t bytes)
{
    if (a->region) {
        size_t end = a->used_bytes + bytes;
        if (end > a->backed_bytes && !a->back(a->back_ctx, end, &a->backed_bytes))
            return NULL;
        return a->region + a->used_bytes;
    }
    if ((!a->blocks || bytes > a->blocks->size - a->blocks->used) && !push_block(a, bytes))
        return NULL;
    void *p = (char *)a->blocks + a->blocks->used;
    a->blocks->used += bytes;
    return p;
}

void *arena_alloc(struct arena *a, size_t bytes)
{
    if (bytes > SIZE_MAX - ARENA_ALIGN)
        return NULL;
    bytes = bytes ? (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN : ARENA_ALIGN;
    if (a->used_bytes > a->limit_bytes || bytes > a->limit_bytes - a->used_bytes)
        return NULL;
    void *p = take(a, bytes);
    if (!p)
        return NULL;
    a->used_bytes += bytes;
    if (a->used_bytes > a->peak_bytes)
        a->peak_bytes = a->used_bytes;
    return p;
}

void *arena_array(struct arena *a, size_t n, size_t size)
{
    size_t bytes;
    return size_mul(n, size, &bytes) ? arena_alloc(a, bytes) : NULL;
}

/* A mark never names an empty block, so that an empty block may be replaced by a larger one. */
struct arena_mark arena_save(const struct arena *a)
{
    struct arena_block *b = a->blocks;
    while (b && b->used == HEADER)
        b = b->older;
    return (struct arena_mark){.block = b, .block_used = b ? b->used : 0, .used_bytes = a->used_bytes};
}

void arena_restore(struct arena *a, struct arena_mark mark)
{
    struct arena_block *kept = a->blocks;
    if (kept && kept != mark.block) {
        while (kept->older != mark.block) {
            struct arena_block *b = kept->older;
            kept->older = b->older;
            free(b);
        }
        kept->used = HEADER;
    }
    if (mark.block)
        mark.block->used = mark.block_used;
    a->used_bytes = mark.used_bytes;
}

void arena_reset_peak(struct arena *a) { a->peak_bytes = a->used_bytes; }
