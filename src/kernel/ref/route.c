/* The experts of DeepSeek-V4's tokens (spec deepseek-v4 §2.12): s = sqrt(ln(1 + e^logit)), formed in double precision and
 * rounded once. The bias takes part in the choice only. */
#include <math.h>

#include "kernel/ref/ref_ops.h"

static float score_of(float logit)
{
    double x = (double)logit;
    return (float)sqrt((x > 0.0 ? x : 0.0) + log1p(exp(-fabs(x))));
}

/* Ascending insertion of the best of what is left, top_k times; taken marks what was chosen. */
static void pick(const float *keys, size_t n, size_t top_k, bool *taken, int32_t *ids)
{
    for (size_t i = 0; i < n; i++)
        taken[i] = false;
    for (size_t k = 0; k < top_k; k++) {
        size_t best = n;
        for (size_t i = 0; i < n; i++)
            if (!taken[i] && (best == n || keys[i] > keys[best]))
                best = i;
        taken[best] = true;
    }
    for (size_t i = 0, k = 0; i < n; i++)
        if (taken[i])
            ids[k++] = (int32_t)i;
}

static bool look_up(struct run *run, const struct tensor *table, int32_t token, size_t n, size_t top_k, int32_t *ids)
{
    const int64_t *row = tensor_row(table, (size_t)token);
    for (size_t k = 0; k < top_k; k++) {
        size_t j = k;
        if (row[k] < 0 || (uint64_t)row[k] >= n) {
            run_fail(run, FATHOM_EFORMAT, "route: token %d is sent to expert %lld of %zu", (int)token,
                     (long long)row[k], n);
            return false;
        }
        for (; j > 0 && ids[j - 1] >= row[k]; j--) {
            if (ids[j - 1] == row[k]) {
                run_fail(run, FATHOM_EFORMAT, "route: token %d is sent to expert %lld twice", (int)token,
                         (long long)row[k]);
                return false;
            }
            ids[j] = ids[j - 1];
        }
        ids[j] = (int32_t)row[k];
    }
    return true;
}

void route_ref(struct run *run, const struct tensor *logits, const struct tensor *bias, const struct tensor *table,
               const int32_t *tokens, size_t top_k, float scale, int32_t *ids, float *weights)
{
    size_t n = logits->shape[1];
    struct arena_mark mark = arena_save(run->arena);
    float *scores = run_scratch(run, n, sizeof *scores), *keys = run_scratch(run, n, sizeof *keys);
    bool *taken = run_scratch(run, n, sizeof *taken);
    for (size_t row = 0; row < logits->shape[0] && run_ok(run); row++, ids += top_k, weights += top_k) {
        const float *x = tensor_row(logits, row);
        float sum = 0.0f;
        for (size_t i = 0; i < n; i++) {
            scores[i] = score_of(x[i]);
            keys[i] = bias ? scores[i] + value_f32(bias, i) : scores[i];
            if (isnan(keys[i]))
                run_fail(run, FATHOM_ENUMERIC, "route: the score of expert %zu in row %zu is NaN", i, row);
        }
        if (table && !look_up(run, table, tokens[row], n, top_k, ids))
            break;
        if (!table)
            pick(keys, n, top_k, taken, ids);
        for (size_t k = 0; k < top_k; k++)
            sum += scores[ids[k]];
        for (size_t k = 0; k < top_k; k++)
            weights[k] = scores[ids[k]] / (sum + 1e-20f) * scale; /* scores may all have vanished */
    }
    arena_restore(run->arena, mark);
}
