#include "nn/kv_cache.h"

#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"

static enum fathom_status take_memory(void **out, size_t bytes, struct device *device, struct fathom_err *err)
{
    if (device)
        return device->alloc(device, bytes, "the key-value cache", out, err);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return fail_nomem(err, bytes, "the key-value cache");
    *out = memory;
    return FATHOM_OK;
}

enum fathom_status kv_cache_create(struct kv_cache *c, size_t n_layers, size_t n_kv_heads, size_t head_dim,
                                   size_t n_ctx, enum dtype dtype, struct device *device, struct fathom_err *err)
{
    size_t capacity = (n_ctx + ATTENTION_TILE - 1) / ATTENTION_TILE * ATTENTION_TILE, per_layer, bytes;

    memset(c, 0, sizeof *c);
    if (n_layers > MAX_LAYERS || !size_mul(capacity, n_kv_heads * head_dim, &per_layer) ||
        !size_mul(per_layer, 2 * n_layers * dtype_bytes(dtype, 1), &bytes))
        return fail(err, FATHOM_ELIMIT, "a context of %zu tokens is too long", n_ctx);
    enum fathom_status status = take_memory(&c->memory, bytes, device, err);
    if (status)
        return status;
    c->device = device;
    c->memory_bytes = bytes;
    c->n_layers = n_layers;
    c->capacity = capacity;
    char *at = c->memory;
    size_t half = dtype_bytes(dtype, per_layer);
    for (size_t l = 0; l < n_layers; l++, at += 2 * half)
        c->layers[l] = (struct kv_layer){(void *)at, (void *)(at + half), n_kv_heads, head_dim, capacity};
    return FATHOM_OK;
}

void kv_cache_release(struct kv_cache *c)
{
    if (c->memory && c->device)
        c->device->release(c->device, c->memory);
    else if (c->memory)
        munmap(c->memory, c->memory_bytes);
    memset(c, 0, sizeof *c);
}

void kv_cache_rewind(struct kv_cache *c, size_t n_tok)
{
    if (n_tok < c->n_tok)
        c->n_tok = n_tok;
    if (n_tok == 0 && !c->device) /* gives the pages back: a short page after a long one needs no more than its own */
        madvise(c->memory, c->memory_bytes, MADV_DONTNEED);
}

size_t kv_cache_bytes(const struct kv_cache *c, size_t n_tok)
{
    return c->capacity ? c->memory_bytes / c->capacity * n_tok : 0;
}
