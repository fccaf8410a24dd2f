/* Keys and values of all decoder layers of one sequence, in the order attention_causal reads them: in float32, on a device
 * in the dtype of its activations. */
#ifndef FATHOM_NN_KV_CACHE_H
#define FATHOM_NN_KV_CACHE_H

#include "kernel/device.h"
#include "weights/config.h"

struct kv_cache {
    struct kv_layer layers[MAX_LAYERS];
    size_t n_layers, capacity, n_tok; /* tokens it can hold; tokens it holds */
    void *memory;                     /* owned; pages that were never written take no memory */
    size_t memory_bytes;
    struct device *device; /* borrowed; where the memory is, NULL: this process's */
};

enum fathom_status kv_cache_create(struct kv_cache *c, size_t n_layers, size_t n_kv_heads, size_t head_dim,
                                   size_t n_ctx, enum dtype dtype, struct device *device, struct fathom_err *err);
void kv_cache_release(struct kv_cache *c); /* a zeroed one is fine */

/* Forgets the tokens from n_tok on (0: all). */
void kv_cache_rewind(struct kv_cache *c, size_t n_tok);

/* Bytes that n_tok tokens fill. */
size_t kv_cache_bytes(const struct kv_cache *c, size_t n_tok);

#endif
