#include "text/bpe.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
#define SHORT_PIECE 48 /* up to here looking at all pairs for each merge is faster than a heap */

enum fathom_status bpe_init(struct bpe *b, size_t n_merges, struct fathom_err *err)
{
    size_t n_slots = 16, bytes;
    while (n_slots / 2 < n_merges)
        n_slots *= 2;
    if (!size_mul(n_slots, sizeof *b->table, &bytes) || !(b->table = malloc(bytes)))
        return fail_nomem(err, n_slots, "merges");
    memset(b->table, 0xff, bytes);
    b->mask = n_slots - 1;
    b->key = hash_key_random();
    return FATHOM_OK;
}

void bpe_release(struct bpe *b)
{
    free(b->table);
    b->table = NULL;
}

/* The slot that holds a pair or is free for it. */
static struct merge *find(const struct bpe *b, uint32_t left, uint32_t right)
{
    size_t at = hash_u64(b->key, (uint64_t)left << 32 | right) & b->mask;
    while ((b->table[at].left != left || b->table[at].right != right) && b->table[at].left != NONE)
        at = (at + 1) & b->mask;
    return &b->table[at];
}

void bpe_add(struct bpe *b, struct merge merge) { *find(b, merge.left, merge.right) = merge; }

static size_t merge_short(const struct bpe *b, const char *piece, size_t n, int32_t *ids)
{
    uint32_t id[SHORT_PIECE], rank[SHORT_PIECE], merged[SHORT_PIECE]; /* rank and merged: of i and i + 1 */
    for (size_t i = 0; i < n; i++)
        id[i] = b->byte_ids[(unsigned char)piece[i]];
    for (size_t i = 0; i + 1 < n; i++) {
        const struct merge *m = find(b, id[i], id[i + 1]);
        rank[i] = m->rank; /* NONE in an empty slot */
        merged[i] = m->id;
    }
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            best = rank[i] < rank[best] ? i : best;
        if (rank[best] == NONE)
            break;
        id[best] = merged[best];
        n--;
        for (size_t i = best + 1; i < n; i++) {
            id[i] = id[i + 1];
            rank[i - 1] = rank[i];
            merged[i - 1] = merged[i];
        }
        for (size_t i = best ? best - 1 : 0; i <= best && i + 1 < n; i++) {
            const struct merge *m = find(b, id[i], id[i + 1]);
            rank[i] = m->rank;
            merged[i] = m->id;
        }
    }
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)id[i];
    return n;
}

/* Long pieces: a linked list of symbols and a heap of possible merges, rank << 32 | position. An entry whose rank is no
 * longer that of the symbol at its position is stale and skipped. */
struct bpe_symbol {
    uint32_t id, previous, next; /* NONE at the ends                                            */
    uint32_t rank, merged;       /* of this and the next; NONE: nothing, or merged into the one before */
};

void bpe_scratch_free(struct bpe_scratch *s)
{
    free(s->symbols);
    free(s->heap);
    *s = (struct bpe_scratch){0};
}

static void sift_down(uint64_t *heap, size_t n, size_t at)
{
    uint64_t value = heap[at];
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= value)
            break;
        heap[at] = heap[child];
    }
    heap[at] = value;
}

static void sift_up(uint64_t *heap, size_t at)
{
    uint64_t value = heap[at];
    for (; at > 0 && heap[(at - 1) / 2] > value; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = value;
}

/* Looks up what symbol and its next one make; true when they make something. */
static bool rate(const struct bpe *b, struct bpe_symbol *symbols, uint32_t at)
{
    struct bpe_symbol *s = &symbols[at];
    s->rank = NONE;
    if (s->next == NONE)
        return false;
    const struct merge *m = find(b, s->id, symbols[s->next].id);
    s->rank = m->rank;
    s->merged = m->id;
    return s->rank != NONE;
}

static enum fathom_status reserve(struct bpe_scratch *scratch, size_t n, struct fathom_err *err)
{
    if (n > scratch->n_symbols) {
        free(scratch->symbols);
        scratch->n_symbols = 0;
        scratch->symbols = malloc(n * sizeof *scratch->symbols);
        if (!scratch->symbols)
            return fail_nomem(err, n * sizeof *scratch->symbols, "a long word");
        scratch->n_symbols = n;
    }
    /* Each of the n - 1 merges there can be takes one entry off and puts at most two in. */
    if (2 * n > scratch->heap_capacity) {
        free(scratch->heap);
        scratch->heap_capacity = 0;
        scratch->heap = malloc(2 * n * sizeof *scratch->heap);
        if (!scratch->heap)
            return fail_nomem(err, 2 * n * sizeof *scratch->heap, "a long word");
        scratch->heap_capacity = 2 * n;
    }
    return FATHOM_OK;
}

static size_t merge_long(const struct bpe *b, const char *piece, uint32_t n, int32_t *ids, struct bpe_scratch *scratch)
{
    struct bpe_symbol *symbols = scratch->symbols;
    uint64_t *heap = scratch->heap;
    size_t n_heap = 0, n_ids = 0;
    for (uint32_t i = 0; i < n; i++)
        symbols[i] = (struct bpe_symbol){
            .id = b->byte_ids[(unsigned char)piece[i]], .previous = i ? i - 1 : NONE, .next = i + 1 < n ? i + 1 : NONE};
    for (uint32_t i = 0; i < n; i++)
        if (rate(b, symbols, i))
            heap[n_heap++] = (uint64_t)symbols[i].rank << 32 | i;
    for (size_t i = n_heap / 2; i-- > 0;)
        sift_down(heap, n_heap, i);

    while (n_heap) {
        uint32_t at = (uint32_t)heap[0], rank = (uint32_t)(heap[0] >> 32);
        heap[0] = heap[--n_heap];
        if (n_heap)
            sift_down(heap, n_heap, 0);
        struct bpe_symbol *s = &symbols[at];
        if (s->rank != rank)
            continue;
        uint32_t gone = s->next;
        s->id = s->merged;
        s->next = symbols[gone].next;
        symbols[gone].rank = NONE;
        if (s->next != NONE)
            symbols[s->next].previous = at;
        if (rate(b, symbols, at)) {
            heap[n_heap] = (uint64_t)s->rank << 32 | at;
            sift_up(heap, n_heap++);
        }
        if (s->previous != NONE && rate(b, symbols, s->previous)) {
            heap[n_heap] = (uint64_t)symbols[s->previous].rank << 32 | s->previous;
            sift_up(heap, n_heap++);
        }
    }
    for (uint32_t i = 0; i != NONE; i = symbols[i].next)
        ids[n_ids++] = (int32_t)symbols[i].id;
    return n_ids;
}

enum fathom_status bpe_piece(const struct bpe *b, const char *piece, size_t n, int32_t *ids, size_t *n_ids,
                             struct bpe_scratch *scratch, struct fathom_err *err)
{
    if (n <= SHORT_PIECE) {
        *n_ids = merge_short(b, piece, n, ids);
        return FATHOM_OK;
    }
    if (n >= NONE / 2)
        return fail(err, FATHOM_ELIMIT, "word of %zu bytes is too long", n);
    enum fathom_status status = reserve(scratch, n, err);
    if (!status)
        *n_ids = merge_long(b, piece, (uint32_t)n, ids, scratch);
    return status;
}
