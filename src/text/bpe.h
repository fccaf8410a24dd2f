/* Byte-pair merging: a table of merges and the merging of one piece. */
#ifndef FATHOM_TEXT_BPE_H
#define FATHOM_TEXT_BPE_H

#include "base/err.h"
#include "base/hash.h"

/* left followed by right becomes id; of all pairs in a piece the one with the lowest rank goes first, of equals the
 * leftmost. */
struct merge {
    uint32_t left, right, rank, id;
};

struct bpe {
    struct merge *table; /* open addressing; left UINT32_MAX: empty */
    size_t mask;
    struct hash_key key;
    uint32_t byte_ids[256];
};

/* An empty table with room for n_merges. byte_ids are the caller's to fill. */
enum fathom_status bpe_init(struct bpe *b, size_t n_merges, struct fathom_err *err);
void bpe_release(struct bpe *b); /* a zeroed b is fine */

/* Replaces an earlier merge of the same pair, as the reference does. At most n_merges calls. */
void bpe_add(struct bpe *b, struct merge merge);

/* Memory for long pieces, kept between calls; zero it to start. */
struct bpe_scratch {
    struct bpe_symbol *symbols;
    size_t n_symbols;
    uint64_t *heap;
    size_t heap_capacity;
};
void bpe_scratch_free(struct bpe_scratch *s);

/* Writes the ids of a piece of n bytes to ids, which has room for n, and their number to *n_ids. A result of merging is
 * always longer than its parts (the opener sees to that), so this ends. O(n log n). */
enum fathom_status bpe_piece(const struct bpe *b, const char *piece, size_t n, int32_t *ids, size_t *n_ids,
                             struct bpe_scratch *scratch, struct fathom_err *err);

#endif
