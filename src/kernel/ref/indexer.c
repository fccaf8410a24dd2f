/* The indexer of compressed sparse attention: index_scores and index_topk (spec deepseek-v4 §2.8). */
#include <math.h>

#include "kernel/ref/indexer.h"
#include "kernel/ref/ref_ops.h"

void index_scores_ref(struct run *run, struct tensor *scores, const struct tensor *q, const struct tensor *weights,
                      const struct index_keys *keys, size_t pos)
{
    size_t d = keys->dim, n_heads = weights->shape[1];
    (void)run;
    for (size_t row = 0; row < q->shape[0]; row++) {
        size_t n = (pos + row + 1) / keys->ratio;
        for (size_t w = 0; w < n; w++) {
            const float *key = keys->data + w / KV_LANES * KV_LANES * d + w % KV_LANES, *head = tensor_row(q, row);
            float score = 0.0f;
            for (size_t h = 0; h < n_heads; h++, head += d) {
                float dot = 0.0f;
                for (size_t j = 0; j < d; j++)
                    dot = fmaf(head[j], key[j * KV_LANES], dot);
                score = fmaf(((const float *)tensor_row(weights, row))[h], dot < 0.0f ? 0.0f : dot, score);
            }
            ((float *)tensor_row(scores, row))[w] = score;
        }
    }
}

/* Ascends as the score does; -0 and +0 are equal. */
static uint32_t rank_of(float score)
{
    uint32_t u = f32_bits(score + 0.0f);
    return u & 0x80000000u ? ~u : u | 0x80000000u;
}

/* The rank of the k-th highest of n scores, 0 < k <= n, found digit by digit from the top; *n_equal: how many of that rank
 * belong to the k highest. */
static uint32_t kth_rank(const float *scores, size_t n, size_t k, size_t *n_equal)
{
    uint32_t prefix = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        size_t count[256] = {0};
        for (size_t i = 0; i < n; i++) {
            uint32_t rank = rank_of(scores[i]);
            if (shift == 24 || rank >> (shift + 8) == prefix)
                count[rank >> shift & 0xff]++;
        }
        uint32_t digit = 255;
        for (; count[digit] < k; digit--)
            k -= count[digit];
        prefix = prefix << 8 | digit;
    }
    *n_equal = k;
    return prefix;
}

bool choose_highest(int32_t *chosen, const float *scores, size_t n, size_t top_k)
{
    size_t n_chosen = 0, n_equal = 0;
    uint32_t threshold = 0;
    for (size_t i = 0; i < n; i++)
        if (isnan(scores[i]))
            return false;
    if (n > top_k)
        threshold = kth_rank(scores, n, top_k, &n_equal);
    for (size_t i = 0; i < n; i++) {
        uint32_t rank = n > top_k ? rank_of(scores[i]) : 1;
        if (rank == threshold && n_equal > 0)
            n_equal--;
        else if (rank <= threshold)
            continue;
        chosen[n_chosen++] = (int32_t)i;
    }
    while (n_chosen < top_k)
        chosen[n_chosen++] = -1;
    return true;
}

void index_topk_ref(struct run *run, int32_t *chosen, const struct tensor *scores, size_t ratio, size_t top_k,
                    size_t pos)
{
    for (size_t row = 0; row < scores->shape[0] && run_ok(run); row++)
        if (!choose_highest(chosen + row * top_k, tensor_row(scores, row), (pos + row + 1) / ratio, top_k))
            run_fail(run, FATHOM_ENUMERIC, "index_topk: an index score of position %zu is NaN", pos + row);
}
