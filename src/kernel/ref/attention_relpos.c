/* Attention with decomposed relative positions. For a query (qy, qx) and a key (ky, kx) of a grid of side n:
 *     s = q·k * (1 / sqrt d), then + q·rel_h[qy - ky + n - 1], then + q·rel_w[qx - kx + n - 1]
 * and the online softmax of kernel.h over tiles that are the rows of the key grid. Shapes: see attention_relpos.
 * pad, rel_h, rel_w: f32, f16 or bf16. */
#include <math.h>

#include "kernel/ref/online_softmax.h"

struct relpos_ref {
    const struct tensor *qkv;
    struct relpos_shape shape;
    size_t d, kh, kw;    /* key grid: the window or the whole map */
    size_t view, y0, x0; /* its origin                            */
    const float *pad;    /* [3C] */
    float *scores, *acc;
};

/* q (0), k (1) or v (2) of a token of the key grid; padding outside of the map. */
static const float *token(const struct relpos_ref *a, size_t part, size_t head, size_t y, size_t x)
{
    size_t offset = (part * a->shape.n_heads + head) * a->d;
    y += a->y0, x += a->x0;
    if (y >= a->shape.gh || x >= a->shape.gw)
        return a->pad + offset;
    return (const float *)tensor_row(a->qkv, (a->view * a->shape.gh + y) * a->shape.gw + x) + offset;
}

static void attend(const struct run *run, const struct relpos_ref *a, float *out, const float *rel_h,
                   const float *rel_w, size_t head, size_t qy, size_t qx)
{
    const float *q = token(a, 0, head, qy, qx), scale = 1.0f / sqrtf((float)a->d);
    struct online_softmax o = online_softmax_init(a->acc, a->d);
    for (size_t ky = 0; ky < a->kh; ky++) {
        float bias_h = dot_f32(q, rel_h + (qy + a->kh - 1 - ky) * a->d, a->d);
        for (size_t kx = 0; kx < a->kw; kx++) {
            float bias_w = dot_f32(q, rel_w + (qx + a->kw - 1 - kx) * a->d, a->d);
            a->scores[kx] = dot_f32(q, token(a, 1, head, ky, kx), a->d) * scale + bias_h + bias_w;
        }
        online_softmax_scores(&o, a->scores, a->kw);
        for (size_t kx = 0; kx < a->kw; kx++)
            online_softmax_value(&o, a->scores[kx], token(a, 2, head, ky, kx));
    }
    online_softmax_result(&o, run, out);
}

/* A vector or table as packed floats; NULL stays NULL. */
static float *floats(struct run *run, const struct tensor *t, size_t n)
{
    float *out = t ? run_scratch(run, n, sizeof *out) : NULL;
    for (size_t i = 0; out && i < n; i++)
        out[i] = value_f32(t, i);
    return out;
}

void attention_relpos_ref(struct run *run, struct tensor *y, const struct tensor *qkv, const struct tensor *pad,
                          const struct tensor *rel_h, const struct tensor *rel_w, struct relpos_shape shape)
{
    size_t d = y->shape[1] / shape.n_heads;
    size_t kh = shape.window ? shape.window : shape.gh, kw = shape.window ? shape.window : shape.gw;
    struct arena_mark mark = arena_save(run->arena);
    struct relpos_ref a = {.qkv = qkv, .shape = shape, .d = d, .kh = kh, .kw = kw};
    const float *table_h = floats(run, rel_h, (2 * kh - 1) * d), *table_w = floats(run, rel_w, (2 * kw - 1) * d);
    a.pad = floats(run, pad, 3 * shape.n_heads * d);
    a.scores = run_scratch(run, kw, sizeof(float));
    a.acc = run_scratch(run, d, sizeof(float));
    if (!run_ok(run))
        return;
    for (a.view = 0; a.view < shape.n_views; a.view++)
        for (size_t row = 0; row < shape.gh; row++)
            for (size_t col = 0; col < shape.gw; col++)
                for (size_t head = 0; head < shape.n_heads; head++) {
                    float *out = (float *)tensor_row(y, (a.view * shape.gh + row) * shape.gw + col) + head * d;
                    a.y0 = row / kh * kh, a.x0 = col / kw * kw;
                    attend(run, &a, out, table_h, table_w, head, row - a.y0, col - a.x0);
                }
    arena_restore(run->arena, mark);
}
