/* What one DeepSeek-V4 sequence keeps between chunks (spec deepseek-v4 §3), in float32: per layer a ring of the window's
 * rows; in layers that compress, the entries so far and the rows of the window that is not complete yet; in layers with an
 * indexer, the same of its keys. */
#ifndef FATHOM_NN_V4_STATE_H
#define FATHOM_NN_V4_STATE_H

#include "kernel/kernel.h"
#include "weights/config_v4.h"

/* One compressor's rows that later windows need. A row is `width` values, then `width` scores (ape not added). */
struct v4_rows {
    size_t ratio, dim, width; /* dim of an entry; width: dim, or 2 dim when windows overlap; ratio 0: no compressor */
    float *partial;           /* [ratio][2 width]: the tokens of the current window                                 */
    float *previous;          /* [ratio][2 dim]: the first halves of the last complete window; NULL: no overlap     */
};

struct v4_layer_state {
    float *window;  /* [window][head_dim]: the row of position p in slot p mod window */
    float *entries; /* [capacity / ratio][head_dim]                                   */
    struct v4_rows main, index;
    struct index_keys keys; /* of the indexer */
};

/* How queries with no more candidates than the indexer would choose are treated; both give the same bits. */
enum v4_indexer {
    V4_INDEXER_AUTO,   /* they see all their candidates, and nothing of the indexer is computed for them */
    V4_INDEXER_ALWAYS, /* the indexer runs for every query                                               */
};

/* What keys are: exact, or rounded as the published code rounds them (nn/v4_rounding.h). */
enum v4_numerics { V4_NUMERICS_PLAIN, V4_NUMERICS_OFFICIAL };

struct v4_stats {
    uint64_t indexed_queries;   /* queries, counted once a layer, for which the indexer ran */
    uint64_t unindexed_queries; /* those that needed no choice                              */
    uint64_t scored_candidates; /* scores computed                                          */
};

struct v4_state {
    struct v4_layer_state layers[MAX_LAYERS];
    size_t n_layers, window, head_dim;
    size_t capacity, n_tok; /* tokens it can hold; tokens it holds */
    enum v4_indexer indexer;
    enum v4_numerics numerics; /* not to be changed while there are tokens */
    struct v4_stats stats;
    void *memory; /* owned; pages that were never written take no memory */
    size_t memory_bytes;
};

enum fathom_status v4_state_create(struct v4_state *s, const struct v4_config *c, size_t n_ctx, struct fathom_err *err);
void v4_state_release(struct v4_state *s); /* a zeroed one is fine */

/* Forgets all tokens; the indexer's switch and the counters stay. */
void v4_state_reset(struct v4_state *s);

/* Bytes that a sequence of n_tok tokens fills. */
size_t v4_state_bytes(const struct v4_state *s, size_t n_tok);

/* A copy of the sequence as it is, to go back to later, in this state or in another of the same configuration. */
struct v4_snapshot {
    size_t n_tok, bytes;
    float *data; /* owned */
};

enum fathom_status v4_state_save(const struct v4_state *s, struct v4_snapshot *out, struct fathom_err *err);
enum fathom_status v4_state_restore(struct v4_state *s, const struct v4_snapshot *snapshot, struct fathom_err *err);
void v4_snapshot_release(struct v4_snapshot *snapshot); /* a zeroed one is fine */

#endif
