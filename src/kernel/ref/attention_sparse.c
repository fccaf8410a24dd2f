/* DeepSeek-V4's attention over a window of raw keys and over compressed entries, all heads sharing one key that is its
 * own value (spec deepseek-v4 §2.10). A query's keys are a list: window rows, then entries; online softmax of kernel.h
 * over tiles of ATTENTION_TILE keys of the list, beginning with the sink: m = sink, l = 1 in lane 0, acc = 0. */
#include <math.h>

#include "kernel/ref/online_softmax.h"
#include "kernel/ref/sparse_list.h"

void attention_sparse_ref(struct run *run, struct tensor *y, const struct tensor *q, const struct tensor *sinks,
                          const struct sparse_keys *keys, size_t n_heads, size_t pos)
{
    size_t d = q->shape[1] / n_heads;
    struct arena_mark mark = arena_save(run->arena);
    float *acc = run_scratch(run, d, sizeof *acc), scale = 1.0f / sqrtf((float)d);
    for (size_t row = 0; row < q->shape[0] && run_ok(run); row++) {
        struct sparse_list list = sparse_list_of(keys, row, q->shape[0], pos);
        for (size_t head = 0; head < n_heads; head++) {
            const float *qr = (const float *)tensor_row(q, row) + head * d;
            struct online_softmax o = online_softmax_init(acc, d);
            o.max = value_f32(sinks, head);
            o.sums[0] = 1.0f;
            for (size_t start = 0; start < list.n; start += ATTENTION_TILE) {
                size_t n = list.n - start < ATTENTION_TILE ? list.n - start : ATTENTION_TILE;
                float s[ATTENTION_TILE];
                for (size_t j = 0; j < n; j++)
                    s[j] = dot_f32(qr, sparse_list_key(&list, start + j), d) * scale;
                online_softmax_scores(&o, s, n);
                for (size_t j = 0; j < n; j++)
                    online_softmax_value(&o, s[j], sparse_list_key(&list, start + j));
            }
            online_softmax_result(&o, run, (float *)tensor_row(y, row) + head * d);
        }
    }
    arena_restore(run->arena, mark);
}
