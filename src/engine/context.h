/* One sequence being read or written: threads, scratch, cache and position. */
#ifndef FATHOM_ENGINE_CONTEXT_H
#define FATHOM_ENGINE_CONTEXT_H

#include "engine/placement.h"
#include "nn/kv_cache.h"

struct fathom_context {
    const struct fathom_model *model;   /* borrowed                                                   */
    const struct fathom_model *network; /* what runs: the model itself, or its placement on the device */
    const struct kernels *kernels;      /* of the processor                                           */
    struct device *device;              /* owned; NULL: none                                          */
    struct placement placement;
    char why_no_device[256]; /* when "auto" found none, else "" */
    enum fathom_dtype act;
    struct pool *pool;  /* owned                                      */
    struct arena arena; /* in the memory of what runs                 */
    struct kv_cache kv;
    float *logits;           /* [vocab_size], owned: those after the last token */
    struct decoder *decoder; /* owned: of the files it reads; NULL until the first of them */
    void (*trace)(void *trace_ctx, const char *op, const struct tensor *out); /* of every run; NULL: none */
    void *trace_ctx;
};

/* A run over the context's back end, pool and arena. */
struct run context_run(struct fathom_context *ctx);

/* Rows of embeddings that are not in the token table: block [n, dim] replaces the n positions whose id is image_id. */
struct context_image {
    const struct tensor *block; /* NULL: no picture */
    int32_t image_id;
};

/* Every id is in the vocabulary. */
enum fathom_status context_check_ids(const struct fathom_context *ctx, const int32_t *ids, size_t n,
                                     struct fathom_err *err);

/* x [n, dim] = the embeddings of n ids that were checked. *image_row counts the picture's rows that were used so far. */
void context_embed(struct run *run, const struct decoder *d, struct tensor *x, const int32_t *ids,
                   const struct context_image *image, size_t *image_row);

/* Appends n tokens, in chunks of at most `chunk` (0: the usual size), and leaves the logits of the last one in
 * ctx->logits. Ids are checked; fails with FATHOM_ELIMIT when the cache cannot hold them. keep_going,
 * when given, is called before every operation and after each chunk; false cancels. */
enum fathom_status context_append(struct fathom_context *ctx, const int32_t *ids, size_t n,
                                  const struct context_image *image, size_t chunk,
                                  bool (*keep_going)(void *user, size_t done, size_t total), void *user,
                                  struct fathom_err *err);

/* Forgets everything. */
void context_reset(struct fathom_context *ctx);

#endif
