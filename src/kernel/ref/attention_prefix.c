/* Attention in which row i of a sequence sees the keys [0, max(prefix, i + 1)): s = q·k * (1 / sqrt d), online softmax of
 * kernel.h over tiles of ATTENTION_TILE keys. Shapes: see attention_prefix. */
#include <math.h>

#include "kernel/ref/online_softmax.h"

void attention_prefix_ref(struct run *run, struct tensor *y, const struct tensor *q, const struct tensor *k,
                          const struct tensor *v, size_t n_heads, size_t n_kv_heads, size_t n_seqs, size_t prefix)
{
    size_t d = q->shape[1] / n_heads, n = q->shape[0] / n_seqs, group = n_heads / n_kv_heads;
    struct arena_mark mark = arena_save(run->arena);
    float *acc = run_scratch(run, d, sizeof *acc), scale = 1.0f / sqrtf((float)d);
    if (!run_ok(run))
        return;
    for (size_t row = 0; row < n_seqs * n; row++) {
        size_t first = row / n * n, i = row - first, n_visible = i + 1 > prefix ? i + 1 : prefix;
        n_visible = n_visible < n ? n_visible : n;
        for (size_t head = 0; head < n_heads; head++) {
            const float *qr = (const float *)tensor_row(q, row) + head * d;
            struct online_softmax o = online_softmax_init(acc, d);
            for (size_t start = 0; start < n_visible; start += ATTENTION_TILE) {
                size_t n_tile = n_visible - start < ATTENTION_TILE ? n_visible - start : ATTENTION_TILE;
                size_t offset = head / group * d;
                float s[ATTENTION_TILE];
                for (size_t j = 0; j < n_tile; j++)
                    s[j] = dot_f32(qr, (const float *)tensor_row(k, first + start + j) + offset, d) * scale;
                online_softmax_scores(&o, s, n_tile);
                for (size_t j = 0; j < n_tile; j++)
                    online_softmax_value(&o, s[j], (const float *)tensor_row(v, first + start + j) + offset);
            }
            online_softmax_result(&o, run, (float *)tensor_row(y, row) + head * d);
        }
    }
    arena_restore(run->arena, mark);
}
