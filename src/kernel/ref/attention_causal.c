/* Causal attention over the cache of a layer: k and v are appended at pos .. pos+n-1, then row i sees the positions
 * [0, pos + i]: s = q·k * (1 / sqrt d), online softmax of kernel.h over tiles of ATTENTION_TILE keys. Shapes: see
 * attention_causal and struct kv_layer. */
#include <math.h>

#include "kernel/ref/online_softmax.h"

/* Element 0 of a cached key; element j is KV_LANES * j further. */
static float *cached_key(const struct kv_layer *kv, size_t head, size_t t)
{
    return kv->k + (head * kv->capacity + t / KV_LANES * KV_LANES) * kv->head_dim + t % KV_LANES;
}

static float *cached_value(const struct kv_layer *kv, size_t head, size_t t)
{
    return kv->v + (head * kv->capacity + t) * kv->head_dim;
}

static void append(struct kv_layer *kv, const float *k, const float *v, size_t t)
{
    size_t d = kv->head_dim;
    for (size_t head = 0; head < kv->n_kv_heads; head++)
        for (size_t j = 0; j < d; j++) {
            cached_key(kv, head, t)[j * KV_LANES] = k[head * d + j];
            cached_value(kv, head, t)[j] = v[head * d + j];
        }
}

static float key_dot(const float *q, const float *key, size_t d)
{
    float acc = 0.0f;
    for (size_t j = 0; j < d; j++)
        acc = fmaf(q[j], key[j * KV_LANES], acc);
    return acc;
}

void attention_causal_ref(struct run *run, struct tensor *y, const struct tensor *q, const struct tensor *k,
                          const struct tensor *v, struct kv_layer *kv, size_t n_heads, size_t pos)
{
    size_t n = q->shape[0], d = kv->head_dim, group = n_heads / kv->n_kv_heads;
    struct arena_mark mark = arena_save(run->arena);
    float *acc = run_scratch(run, d, sizeof *acc), scale = 1.0f / sqrtf((float)d);
    if (!run_ok(run))
        return;
    for (size_t i = 0; i < n; i++)
        append(kv, tensor_row(k, i), tensor_row(v, i), pos + i);
    for (size_t i = 0; i < n; i++)
        for (size_t head = 0; head < n_heads; head++) {
            const float *qr = (const float *)tensor_row(q, i) + head * d;
            struct online_softmax o = online_softmax_init(acc, d);
            for (size_t start = 0; start <= pos + i; start += ATTENTION_TILE) {
                size_t n_tile = pos + i + 1 - start < ATTENTION_TILE ? pos + i + 1 - start : ATTENTION_TILE;
                float s[ATTENTION_TILE];
                for (size_t j = 0; j < n_tile; j++)
                    s[j] = key_dot(qr, cached_key(kv, head / group, start + j), d) * scale;
                online_softmax_scores(&o, s, n_tile);
                for (size_t j = 0; j < n_tile; j++)
                    online_softmax_value(&o, s[j], cached_value(kv, head / group, start + j));
            }
            online_softmax_result(&o, run, (float *)tensor_row(y, i) + head * d);
        }
    arena_restore(run->arena, mark);
}
