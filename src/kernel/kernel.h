/* The kernel interface: the operations of the models in the papers' words. Model files call the functions at the end
 * of this page and nothing lower; each back end fills a struct kernels.
 *
 * Activations are float32 tensors. With act == FATHOM_BF16 each operation rounds its result to bfloat16 (ties to even)
 * where the reference implementation, run in bfloat16, stores one; sums stay in float32. A device (kernel/device.h)
 * stores them in bfloat16 then; logits and what softmax_topk reads may stay float32.
 *
 * Tensors, ids and positions lie in the memory of the run's back end, which on a device the processor cannot read:
 * upload and download are the ways in and out, and copy, positions, resize_* fill tensors from what is there already.
 *
 * One definition of every sum, so that a result depends on nothing but its inputs: not on the number of rows beside it,
 * the thread count, the chunking of a prefill or the instruction set. ref/, AVX2 and AVX-512 give the same bits.
 *   - dot products (linear, conv2d, scores): acc = +0; for k ascending: acc = fma(x[k], w[k], acc)
 *   - sums over a row (norms, softmax): 16 partial sums, lane j % 16 takes element j, ascending; then lanes are folded
 *     16 -> 8 -> 4 -> 2 -> 1, lane i plus lane i + half
 *   - exp, erf, sigmoid: the polynomials of kernel/math.h, with fused multiply-adds as written there
 *   - attention: online softmax over key tiles in ascending order. For each tile: s = dot * scale (+ bias terms);
 *     m' = max(m, max s); alpha = exp(m - m'); p = exp(s - m'); l = l * alpha (+) p in 16 lanes by position in the tile;
 *     acc[d] = acc[d] * alpha, then acc[d] = fma(p, v[d], acc[d]) for keys ascending. Result acc[d] * (1 / sum of l).
 *     Tiles start at multiples of ATTENTION_TILE keys, in attention_relpos at the rows of the key grid. The bias terms
 *     are added one after the other: s = (dot * scale + q·rel_h) + q·rel_w. A key that a row does not see is not there.
 *
 * The first error is recorded in run->err; later operations then do nothing, so callers check once. */
#ifndef FATHOM_KERNEL_KERNEL_H
#define FATHOM_KERNEL_KERNEL_H

#include "base/arena.h"
#include "base/err.h"
#include "base/pool.h"
#include "kernel/tensor.h"

#define ATTENTION_TILE 64
#define KV_LANES 16

struct kernels;
struct device;

struct run {
    const struct kernels *kernels;
    struct pool *pool;     /* borrowed                                                        */
    struct arena *arena;   /* borrowed; activations and scratch, in the back end's memory     */
    enum fathom_dtype act; /* where results are rounded                                       */
    enum dtype dtype;      /* in which they are stored: f32; bf16 on a device when act is     */
    struct device *device; /* borrowed; NULL: this process's memory and processors            */
    struct fathom_err err; /* the first error                                                 */
    /* Called after every operation with its name and its output; NULL: not called. */
    void (*trace)(void *ctx, const char *op, const struct tensor *out);
    void *trace_ctx;
    /* Asked before every operation, so that a stage of many seconds can be left in its midst; false records
     * FATHOM_ECANCELLED. NULL: nobody is asked. */
    bool (*keep_going)(void *ctx);
    void *keep_going_ctx;
};

enum epilogue {
    EPILOGUE_NONE,       /* y = x w^T + b                       */
    EPILOGUE_GELU,       /* erf form                            */
    EPILOGUE_QUICK_GELU, /* x * sigmoid(1.702 x)                */
};

/* Convolution over a map [views, h, w, c] with any strides; weights [out, in, kh, kw] or flattened [out, in*kh*kw];
 * output side (side + 2 pad - kernel) / stride + 1. */
struct conv2d_shape {
    size_t kernel, stride, pad;
};

/* Relative-position attention over a grid of gh x gw tokens a view (spec deepseek-ocr §3.1). window 0: all tokens see
 * each other and rel_h is [2 gh - 1, d], rel_w [2 gw - 1, d]. window n: the grid is cut into n x n windows, padded at
 * the bottom and right by tokens whose q, k, v are `pad` (the qkv bias, since padding comes after the norm); tables are
 * [2 n - 1, d]. Padding is never stored: windows are read from and written to the unpadded map. */
struct relpos_shape {
    size_t n_views, gh, gw, n_heads, window;
};

/* Keys and values of one decoder layer, float32, in the order in which attention reads them:
 * k [n_kv_heads][capacity / 16][head_dim][16], v [n_kv_heads][capacity][head_dim]. On a device both are
 * [n_kv_heads][capacity][head_dim] in the dtype of the run. */
struct kv_layer {
    float *k, *v;
    size_t n_kv_heads, head_dim, capacity; /* capacity: tokens, a multiple of ATTENTION_TILE */
};

struct mlp_weights {        /* SwiGLU: down(silu(gate x) * (up x)) */
    struct tensor gate, up; /* [hidden, dim] */
    struct tensor down;     /* [dim, hidden] */
};

struct moe_weights { /* softmax over all experts, the top_k largest as they are, plus one shared expert, unweighted */
    struct tensor router;              /* [n_experts, dim]                     */
    const struct mlp_weights *experts; /* n_experts of them                    */
    struct mlp_weights shared;         /* gate.data NULL: none                 */
    size_t n_experts, top_k;
    bool norm_topk; /* weights of the chosen divided by their sum */
    float routed_scale;
    float swiglu_limit; /* gate x at most this, up x between it and its negative; 0: no limit */
};

/* A manifold-constrained hyper-connection of n_streams residual streams, x [n, n_streams * dim], stream 0 first. With
 * m = fn x / rms(x), scaled and shifted part by part: pre = sigmoid + eps weighs the streams into the sublayer's input;
 * post = 2 sigmoid weighs its output into each stream; comb, a softmax made doubly stochastic by n_iters Sinkhorn steps,
 * mixes the streams (spec deepseek-v4 §2.2). The head's collapse has pre alone. */
struct hyper_weights {
    struct tensor fn; /* [(2 + n_streams) * n_streams, n_streams * dim]: rows of pre, post, comb; the head's: of pre */
    struct tensor base;  /* a number for each row */
    struct tensor scale; /* [3]; the head's: [1]  */
};

struct hyper_shape {
    size_t n_streams, n_iters;
    float eps, norm_eps;
};

#define MAX_STREAMS 8

/* Compression of token rows into entries: windows of `ratio` rows; with overlap, of the `ratio` rows before as well. */
struct compress_shape {
    size_t ratio;
    bool overlap;      /* rows are [2 d]: the first half counts in the next window's entry, the second in its own */
    bool has_previous; /* with overlap: the first `ratio` rows are the window before                              */
};

/* The index keys of a sequence, in the order in which index_scores reads them: [capacity / 16][dim][16]. */
struct index_keys {
    float *data;
    size_t dim, ratio; /* entry w is there for queries from position ratio * (w + 1) - 1 on */
};

/* What the queries of attention_sparse see besides their own row. A key is its own value. */
struct sparse_keys {
    struct tensor window;  /* [n_before + n, d]: the rows of the n_before tokens before the queries, then their own */
    size_t n_window;       /* rows of it that a query sees, its own included                                       */
    struct tensor entries; /* [any, d]; data NULL: there are none                                                  */
    size_t ratio;          /* entry w is there for queries from position ratio * (w + 1) - 1 on                    */
    const int32_t *chosen; /* [n - n_all, top_k], ascending: what the queries after the first n_all see of them    */
    size_t n_all, top_k;   /* the first n_all queries see all entries that are there for them                      */
};

/* What a back end fills. The first numbers and functions are what depends on where its memory is. All matrices are
 * [rows, cols] with unit column stride; y never overlaps an input unless said. */
struct kernels {
    const char *name;
    size_t max_rows;  /* rows that a wide intermediate result (an MLP's hidden rows) has at a time     */
    size_t max_views; /* views of a page that go through the vision tower together                     */
    void (*upload)(struct run *, struct tensor *y, const float *x);
    void (*upload_ids)(struct run *, int32_t *y, const int32_t *x, size_t n);
    void (*download)(struct run *, float *y, const struct tensor *x);
    void (*copy)(struct run *, struct tensor *y, const struct tensor *x);
    void (*positions)(struct run *, int32_t *pos, int32_t first, size_t n);
    void (*resize_1d)(struct run *, struct tensor *y, const struct tensor *x);
    void (*resize_2d)(struct run *, struct tensor *y, const struct tensor *x, size_t side, size_t g);
    void (*linear)(struct run *, struct tensor *y, const struct tensor *x, const struct tensor *w,
                   const struct tensor *bias, enum epilogue);
    void (*swiglu)(struct run *, struct tensor *y, const struct tensor *x, const struct tensor *gate,
                   const struct tensor *up);
    void (*conv2d)(struct run *, struct tensor *y, const struct tensor *x, const struct tensor *w,
                   const struct tensor *bias, struct conv2d_shape);
    void (*layernorm)(struct run *, struct tensor *y, const struct tensor *x, const struct tensor *w,
                      const struct tensor *bias, float eps);
    void (*rmsnorm)(struct run *, struct tensor *y, const struct tensor *x, const struct tensor *w, float eps);
    void (*rope)(struct run *, struct tensor *x, size_t n_heads, const int32_t *pos, float theta);
    void (*add)(struct run *, struct tensor *x, const struct tensor *y);
    void (*embed)(struct run *, struct tensor *y, const struct tensor *table, const int32_t *ids);
    void (*attention_relpos)(struct run *, struct tensor *y, const struct tensor *qkv, const struct tensor *pad,
                             const struct tensor *rel_h, const struct tensor *rel_w, struct relpos_shape);
    void (*attention_prefix)(struct run *, struct tensor *y, const struct tensor *q, const struct tensor *k,
                             const struct tensor *v, size_t n_heads, size_t n_kv_heads, size_t n_seqs, size_t prefix);
    void (*attention_causal)(struct run *, struct tensor *y, const struct tensor *q, const struct tensor *k,
                             const struct tensor *v, struct kv_layer *kv, size_t n_heads, size_t pos);
    void (*softmax_topk)(struct run *, const struct tensor *logits, size_t top_k, int32_t *ids, float *weights);
    void (*moe)(struct run *, struct tensor *y, const struct tensor *x, const struct moe_weights *);
    void (*moe_chosen)(struct run *, struct tensor *y, const struct tensor *x, const struct moe_weights *,
                       const int32_t *ids, const float *weights);
    void (*route)(struct run *, const struct tensor *logits, const struct tensor *bias, const struct tensor *table,
                  const int32_t *tokens, size_t top_k, float scale, int32_t *ids, float *weights);
    void (*rope_pairs)(struct run *, struct tensor *x, size_t n_heads, const int32_t *pos, const float *frequencies,
                       size_t n_pairs, bool inverse);
    void (*hyper_split)(struct run *, struct tensor *h, struct tensor *mix, const struct tensor *x,
                        const struct tensor *m, const struct hyper_weights *, struct hyper_shape);
    void (*hyper_merge)(struct run *, struct tensor *x, const struct tensor *u, const struct tensor *mix,
                        size_t n_streams);
    void (*compress)(struct run *, struct tensor *y, const struct tensor *values, const struct tensor *scores,
                     const struct tensor *ape, struct compress_shape);
    void (*index_scores)(struct run *, struct tensor *scores, const struct tensor *q, const struct tensor *weights,
                         const struct index_keys *, size_t pos);
    void (*index_topk)(struct run *, int32_t *chosen, const struct tensor *scores, size_t ratio, size_t top_k,
                       size_t pos);
    void (*attention_sparse)(struct run *, struct tensor *y, const struct tensor *q, const struct tensor *sinks,
                             const struct sparse_keys *, size_t n_heads, size_t pos);
};

/* The scalar definitions, and the best level that this processor and `highest` allow. highest: NULL or "avx512", "avx2",
 * "ref"; an unknown name gives NULL. */
extern const struct kernels kernels_ref;
const struct kernels *kernels_select(const char *highest);

/* Activations from the arena; on failure the error is recorded and data is NULL (later operations then do nothing). */
struct tensor run_alloc(struct run *run, size_t rows, size_t cols);
struct tensor run_alloc_map(struct run *run, size_t n, size_t h, size_t w, size_t c);
struct tensor run_alloc_f32(struct run *run, size_t rows, size_t cols); /* float32 whatever the run stores */
void *run_scratch(struct run *run, size_t n, size_t size);
bool run_ok(const struct run *run);
void run_fail(struct run *run, enum fathom_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* y, packed, = the floats x of this process's memory, as many as y has elements. */
void upload(struct run *run, struct tensor *y, const float *x);
void upload_ids(struct run *run, int32_t *y, const int32_t *x, size_t n);

/* The other way: y is this process's, x a matrix. Everything before it has been done when it returns. */
void download(struct run *run, float *y, const struct tensor *x);

/* y = x, two matrices of equal shape that do not overlap; x may be a weight (but q8_0 only whole), y is an activation. */
void copy(struct run *run, struct tensor *y, const struct tensor *x);

/* pos[i] = first + i */
void positions(struct run *run, int32_t *pos, size_t first, size_t n);

/* A table x [n_in, dim] as y [n_out, dim]: linear interpolation without antialiasing, align_corners false. And x
 * [side, side, dim] (any leading 1s) as y [g*g, dim]: antialiased bicubic, a = -0.5 (spec deepseek-ocr §3.1). f32 or
 * bf16 tables; equal sides copy. */
void resize_1d(struct run *run, struct tensor *y, const struct tensor *x);
void resize_2d(struct run *run, struct tensor *y, const struct tensor *x, size_t side, size_t g);

/* y [n, out] = epilogue(x [n, in] · w [out, in]^T + bias [out] or NULL). w: f32, f16, bf16, q8_0, f8_e4m3 or f4_e2m1, its
 * values being those of its codes times their scales; bias f32 or bf16. y may be f32 where the run stores bf16. */
void linear(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
            const struct tensor *bias);
void linear_gelu(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
                 const struct tensor *bias);
void linear_quick_gelu(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
                       const struct tensor *bias);

/* y [n, hidden] = silu(x gate^T) * (x up^T), the inner half of a SwiGLU MLP. */
void swiglu(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *gate,
            const struct tensor *up);

/* The whole of it: y [n, dim] = down(swiglu(x)); y may not be x. */
void mlp(struct run *run, struct tensor *y, const struct tensor *x, const struct mlp_weights *w);

/* y [views, oh, ow, out] from x [views, h, w, in], any input strides (a CHW picture is a view). bias may be NULL. */
void conv2d(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
            const struct tensor *bias, struct conv2d_shape shape);

/* Rows normalised: (x - mean) / sqrt(var + eps) * w + bias, biased variance; and x / sqrt(mean square + eps) * w.
 * y may be x. w, bias: f32 or bf16. */
void layernorm(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w,
               const struct tensor *bias, float eps);
void rmsnorm(struct run *run, struct tensor *y, const struct tensor *x, const struct tensor *w, float eps);

/* Rotates x [n, n_heads * d] in place: pairs (j, j + d/2), angle pos[row] * theta^(-2j/d). cos and sin come from double
 * precision. */
void rope(struct run *run, struct tensor *x, size_t n_heads, const int32_t *pos, float theta);

/* x += y */
void add(struct run *run, struct tensor *x, const struct tensor *y);

/* y [n, dim] = rows ids[0..n) of table; ids are in range (the tokenizer and the probe check them). */
void embed(struct run *run, struct tensor *y, const struct tensor *table, const int32_t *ids);

/* y [n_views*gh*gw, C]; qkv [n_views*gh*gw, 3C]; pad [3C] or NULL when window divides the grid or is 0;
 * C = n_heads * d, d a multiple of 16 (any other d takes ref's path). logit = q·k/sqrt(d) + q·rel_h[qy-ky+n-1] +
 * q·rel_w[qx-kx+n-1]. No N x N array and no factor array of size N x n exists: scratch is per thread and grows with the
 * number of tokens at most linearly. */
void attention_relpos(struct run *run, struct tensor *y, const struct tensor *qkv, const struct tensor *pad,
                      const struct tensor *rel_h, const struct tensor *rel_w, struct relpos_shape shape);

/* n_seqs sequences of equal length S stacked in the rows: q, y [n_seqs*S, n_heads*d], k, v [n_seqs*S, n_kv_heads*d].
 * Row i of a sequence sees keys [0, max(prefix, i + 1)); scale 1/sqrt(d). Query head h uses kv head h / (n_heads /
 * n_kv_heads). Hidden tiles are skipped. */
void attention_prefix(struct run *run, struct tensor *y, const struct tensor *q, const struct tensor *k,
                      const struct tensor *v, size_t n_heads, size_t n_kv_heads, size_t n_seqs, size_t prefix);

/* Appends k, v [n, n_kv_heads*d] to the cache at positions pos .. pos+n-1; row i sees positions [0, pos + i]. */
void attention_causal(struct run *run, struct tensor *y, const struct tensor *q, const struct tensor *k,
                      const struct tensor *v, struct kv_layer *kv, size_t n_heads, size_t pos);

/* Softmax over each row of logits [n, m], then the top_k largest, ties to the lower id: ids and weights [n, top_k], in
 * descending order of weight. NaN logits record FATHOM_ENUMERIC. */
void softmax_topk(struct run *run, const struct tensor *logits, size_t top_k, int32_t *ids, float *weights);

/* y = sum over the chosen experts, ascending id, of weight * mlp_e(x) (acc = fma(weight, expert, acc)), plus the shared
 * expert. Tokens are grouped by expert. */
void moe(struct run *run, struct tensor *y, const struct tensor *x, const struct moe_weights *w);

/* ---- DeepSeek-V4 (spec deepseek-v4 §2). These work in float32, whatever act says. ------------------------------- */

/* moe with experts that are chosen already: ids and weights [n, top_k], ids of a row ascending and distinct. */
void moe_chosen(struct run *run, struct tensor *y, const struct tensor *x, const struct moe_weights *w,
                const int32_t *ids, const float *weights);

/* The experts of each row of logits [n, n_experts], with s = sqrt(softplus(logit)): the top_k largest of s + bias, ties
 * to the lower id (bias NULL: of s), or the row of table [n_tokens, top_k] i64 that the token names (table NULL: chosen).
 * ids [n, top_k] ascending; weights s / (their sum) * scale. NaN records FATHOM_ENUMERIC, a table that names an expert
 * twice or one that does not exist FATHOM_EFORMAT. */
void route(struct run *run, const struct tensor *logits, const struct tensor *bias, const struct tensor *table,
           const int32_t *tokens, size_t top_k, float scale, int32_t *ids, float *weights);

/* Rotates the last 2 * n_pairs channels of every head of x [n, n_heads * d] in place, as neighbouring pairs: angle
 * pos[row] * frequencies[pair], a float32 product; inverse: minus that. cos and sin come from double precision. */
void rope_pairs(struct run *run, struct tensor *x, size_t n_heads, const int32_t *pos, const float *frequencies,
                size_t n_pairs, bool inverse);

/* h [n, dim] = the sublayer's input of streams x; mix [n, n_streams * (n_streams + 1)] = post and comb for hyper_merge.
 * mix NULL: the head's collapse. */
void hyper_split(struct run *run, struct tensor *h, struct tensor *mix, const struct tensor *x,
                 const struct hyper_weights *w, struct hyper_shape shape);

/* x_c = post_c * u + sum over streams j, ascending, of comb[j][c] * x_j; u [n, dim] is the sublayer's output. */
void hyper_merge(struct run *run, struct tensor *x, const struct tensor *u, const struct tensor *mix, size_t n_streams);

/* y [n_windows, d]: each channel a softmax-weighted sum of values over the rows of its window(s), ascending, with the
 * weights' logits in scores + ape. values, scores: [rows, d], or [rows, 2 d] with overlap; ape [ratio, as wide], by row of
 * the window. Without has_previous the first window has no window before it. */
void compress(struct run *run, struct tensor *y, const struct tensor *values, const struct tensor *scores,
              const struct tensor *ape, struct compress_shape shape);

/* scores [n, any]: row i is the query at pos + i and has floor((pos + i + 1) / ratio) candidates; its score of candidate w
 * is the sum over heads, ascending, of weights[head] * max(q_head · key_w, 0) (acc = fma(..)). q [n, n_heads * dim],
 * weights [n, n_heads]. Columns behind a row's candidates are not written. */
void index_scores(struct run *run, struct tensor *scores, const struct tensor *q, const struct tensor *weights,
                  const struct index_keys *keys, size_t pos);

/* chosen [n, top_k]: of each row's candidates the top_k with the highest scores, ties to the lower index, ascending; all of
 * them, then -1, when there are no more. A candidate whose score is NaN records FATHOM_ENUMERIC. */
void index_topk(struct run *run, int32_t *chosen, const struct tensor *scores, size_t ratio, size_t top_k, size_t pos);

/* Attention of one shared key/value head: y, q [n, n_heads * d], row i the query at pos + i. The keys of a query are a
 * list: the window's rows, then its entries, ascending; tiles count from the start of the list. sinks [n_heads]: a
 * logit that takes its share of the softmax and gives nothing: m begins as the sink, the sum of lane 0 as 1. */
void attention_sparse(struct run *run, struct tensor *y, const struct tensor *q, const struct tensor *sinks,
                      const struct sparse_keys *keys, size_t n_heads, size_t pos);

#endif
