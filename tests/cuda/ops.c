/* Every operation on the GPU against the processor: the same bits in float32 and, when exact, in bf16; within a few
 * roundings where tensor cores sum in another order. */
#include "cuda/device_run.h"
#include "kernels/weights.h"

#define FAST_TOLERANCE 4e-3 /* one rounding to bf16 is 2^-9 at most, about 1.7e-3 of a norm */

struct both {
    struct device_run gpu;
    struct kernel_run cpu;
    enum device_mode mode;
    double tolerance;
};
static struct both modes[N_DEVICE_MODES];
static bool quick; /* small shapes only, for compute-sanitizer and the emulator */

static uint64_t seed_of(void)
{
    static uint64_t seed = 0x5eed;
    return seed += 0x10001;
}

static struct matrix act_random(const struct both *b, size_t rows, size_t cols, float amp)
{
    return matrix_random(rows, cols, 0, amp, mode_act(b->mode), seed_of());
}

/* Weights are bf16 in a bf16 run; in float32 of either dtype. */
static struct weight weight_of(const struct both *b, size_t rows, size_t cols)
{
    uint64_t seed = seed_of();
    return weight_random(b->mode == DEVICE_F32 && seed / 0x10001 % 2 ? DTYPE_F32 : DTYPE_BF16, rows, cols, 0, seed);
}

static struct tensor vector_of(const struct weight *w) { return tensor_1d(w->t.dtype, w->t.data, w->t.shape[1]); }

static void start(struct both *b, struct arena_mark *mark) { *mark = arena_save(b->gpu.run.arena); }

static void finish(struct both *b, struct arena_mark mark)
{
    device_ok(&b->gpu, "operation");
    assert_string_equal(b->cpu.run.err.message, "");
    arena_restore(b->gpu.run.arena, mark);
}

#define FOR_MODES(b) for (struct both *b = modes; b < modes + N_DEVICE_MODES; b++)

/* ---- products ---------------------------------------------------------------------------------------------------- */

static void check_linear(struct both *b, size_t n, size_t m, size_t k, int epilogue, bool with_bias, size_t gap)
{
    char what[96];
    struct arena_mark mark;
    struct matrix x = act_random(b, n, k, 1), y = matrix_alloc(n, m, 0);
    struct weight w = weight_of(b, m, k), v = weight_random(w.t.dtype, 1, m, 0, seed_of());
    struct tensor bias = vector_of(&v);
    start(b, &mark);
    struct tensor dx = to_device(&b->gpu, &x.t, gap), dy = poisoned(&b->gpu, n, m, gap, false);
    struct tensor dw = weight_to_device(&b->gpu, &w.t), dbias = weight_to_device(&b->gpu, &bias);
    static void (*const ops[])(struct run *, struct tensor *, const struct tensor *, const struct tensor *,
                               const struct tensor *) = {linear, linear_gelu, linear_quick_gelu};
    ops[epilogue](&b->cpu.run, &y.t, &x.t, &w.t, with_bias ? &bias : NULL);
    ops[epilogue](&b->gpu.run, &dy, &dx, &dw, with_bias ? &dbias : NULL);
    snprintf(what, sizeof what, "linear %zu x %zu x %zu, epilogue %d, bias %d, gap %zu", n, m, k, epilogue, with_bias,
             gap);
    check_device(&b->gpu, what, &dy, &y.t, b->tolerance);
    finish(b, mark);
    matrix_free(&x), matrix_free(&y);
    weight_free(&w), weight_free(&v);
}

static void linear_agrees(void **state)
{
    (void)state;
    static const size_t shapes[][3] = {{1, 1, 1},      {1, 64, 8},     {3, 5, 7},       {1, 130, 1280}, {2, 96, 320},
                                       {4, 66, 72},    {5, 128, 64},   {17, 130, 200},  {64, 64, 64},   {128, 128, 128},
                                       {129, 254, 72}, {257, 320, 96}, {300, 896, 128}, {37, 3, 24},    {70, 33, 65}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        FOR_MODES(b)
        {
            check_linear(b, shapes[i][0], shapes[i][1], shapes[i][2], (int)(i % 3), i % 2, i % 4 == 3 ? 8 : 0);
            check_linear(b, shapes[i][0], shapes[i][1], shapes[i][2], (int)((i + 1) % 3), i % 2 == 0, 0);
        }
    if (!quick)
        FOR_MODES(b)
        {
            check_linear(b, 1500, 768, 3072, 0, true, 0);
            check_linear(b, 1, 4000, 896, 0, false, 0);
        }
}

/* float32 logits of a bf16 run are not rounded. */
static void logits_are_not_rounded(void **state)
{
    (void)state;
    FOR_MODES(b)
    for (size_t n = 1; n <= 9; n += 4) {
        struct arena_mark mark;
        struct matrix x = act_random(b, n, 320, 1), y = matrix_alloc(n, 258, 0);
        struct weight w = weight_of(b, 258, 320);
        start(b, &mark);
        struct tensor dx = to_device(&b->gpu, &x.t, 0), dw = weight_to_device(&b->gpu, &w.t);
        struct tensor dy = poisoned(&b->gpu, n, 258, 0, true);
        enum fathom_dtype act = b->cpu.run.act;
        b->cpu.run.act = FATHOM_F32;
        linear(&b->cpu.run, &y.t, &x.t, &w.t, NULL);
        b->cpu.run.act = act;
        linear(&b->gpu.run, &dy, &dx, &dw, NULL);
        check_device(&b->gpu, "logits", &dy, &y.t, b->tolerance > 0 ? 1e-5 : 0);
        finish(b, mark);
        matrix_free(&x), matrix_free(&y);
        weight_free(&w);
    }
}

static void swiglu_agrees(void **state)
{
    (void)state;
    static const size_t shapes[][3] = {{1, 1, 1},    {1, 48, 64},     {3, 96, 40},
                                       {5, 100, 72}, {130, 192, 320}, {300, 66, 64}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        FOR_MODES(b)
        {
            size_t n = shapes[i][0], m = shapes[i][1], k = shapes[i][2];
            struct arena_mark mark;
            struct matrix x = act_random(b, n, k, 1), y = matrix_alloc(n, m, 0);
            struct weight gate = weight_of(b, m, k), up = weight_random(gate.t.dtype, m, k, 0, seed_of());
            start(b, &mark);
            struct tensor dx = to_device(&b->gpu, &x.t, 0), dy = poisoned(&b->gpu, n, m, 0, false);
            struct tensor dgate = weight_to_device(&b->gpu, &gate.t), dup = weight_to_device(&b->gpu, &up.t);
            swiglu(&b->cpu.run, &y.t, &x.t, &gate.t, &up.t);
            swiglu(&b->gpu.run, &dy, &dx, &dgate, &dup);
            check_device(&b->gpu, "swiglu", &dy, &y.t, 1.5 * b->tolerance);
            finish(b, mark);
            matrix_free(&x), matrix_free(&y);
            weight_free(&gate), weight_free(&up);
        }
}

static void conv2d_agrees(void **state)
{
    (void)state;
    static const struct {
        size_t views, side, in, out, kernel, stride, pad;
        bool planes;
    } shapes[] = {{1, 64, 3, 40, 16, 16, 0, true},
                  {2, 10, 8, 24, 3, 1, 1, false},
                  {1, 12, 16, 32, 3, 2, 1, false},
                  {3, 7, 8, 10, 1, 1, 0, false},
                  {1, 9, 5, 7, 3, 2, 1, false}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        FOR_MODES(b)
        {
            size_t v = shapes[i].views, s = shapes[i].side, in = shapes[i].in, out = shapes[i].out;
            size_t out_side = (s + 2 * shapes[i].pad - shapes[i].kernel) / shapes[i].stride + 1,
                   o = out_side * out_side;
            struct conv2d_shape shape = {shapes[i].kernel, shapes[i].stride, shapes[i].pad};
            struct arena_mark mark;
            struct matrix x = act_random(b, v * s * s, in, 1), y = matrix_alloc(v * o, out, 0);
            struct weight w = weight_of(b, out, in * shape.kernel * shape.kernel);
            start(b, &mark);
            struct tensor dx = to_device(&b->gpu, &x.t, 0), dy = poisoned(&b->gpu, v * o, out, 0, false);
            struct tensor dw = weight_to_device(&b->gpu, &w.t);
            struct tensor map = tensor_4d(DTYPE_F32, x.t.data, v, s, s, in);
            struct tensor y_map = tensor_4d(DTYPE_F32, y.t.data, v, out_side, out_side, out);
            if (shapes[i].planes) {
                map.stride[0] = in * s * s, map.stride[1] = s, map.stride[2] = 1, map.stride[3] = s * s;
            }
            struct tensor dmap = map, dy_map = y_map;
            dmap.data = dx.data, dmap.dtype = dx.dtype;
            dy_map.data = dy.data, dy_map.dtype = dy.dtype;
            conv2d(&b->cpu.run, &y_map, &map, &w.t, NULL, shape);
            conv2d(&b->gpu.run, &dy_map, &dmap, &dw, NULL, shape);
            check_device(&b->gpu, "conv2d", &dy, &y.t, b->tolerance);
            finish(b, mark);
            matrix_free(&x), matrix_free(&y);
            weight_free(&w);
        }
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void norms_agree(void **state)
{
    (void)state;
    static const size_t shapes[][2] = {{1, 1}, {3, 16}, {5, 33}, {20, 320}, {1, 1280}, {50, 768}, {7, 2056}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int gap = 0; gap <= 8; gap += 8)
            FOR_MODES(b)
            {
                size_t n = shapes[i][0], m = shapes[i][1];
                struct arena_mark mark;
                struct matrix x = act_random(b, n, m, 3), y = matrix_alloc(n, m, 0);
                struct weight w = weight_of(b, 1, m), v = weight_random(w.t.dtype, 1, m, 0, seed_of());
                struct tensor scale = vector_of(&w), shift = vector_of(&v);
                start(b, &mark);
                struct tensor dx = to_device(&b->gpu, &x.t, (size_t)gap), dy = poisoned(&b->gpu, n, m, 0, false);
                struct tensor dscale = weight_to_device(&b->gpu, &scale), dshift = weight_to_device(&b->gpu, &shift);
                layernorm(&b->cpu.run, &y.t, &x.t, &scale, &shift, 1e-6f);
                layernorm(&b->gpu.run, &dy, &dx, &dscale, &dshift, 1e-6f);
                check_device(&b->gpu, "layernorm", &dy, &y.t, b->tolerance);
                rmsnorm(&b->cpu.run, &y.t, &x.t, &scale, 1e-6f);
                rmsnorm(&b->gpu.run, &dx, &dx, &dscale, 1e-6f); /* in place */
                check_device(&b->gpu, "rmsnorm", &dx, &y.t, b->tolerance);
                finish(b, mark);
                matrix_free(&x), matrix_free(&y);
                weight_free(&w), weight_free(&v);
            }
}

static void rope_and_add_agree(void **state)
{
    (void)state;
    static const size_t shapes[][3] = {{1, 1, 2}, {3, 4, 16}, {40, 5, 64}, {9, 2, 128}};
    static const int32_t starts[] = {0, 1000, 8000};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        FOR_MODES(b)
        {
            size_t n = shapes[i][0], heads = shapes[i][1], m = heads * shapes[i][2];
            struct arena_mark mark;
            struct matrix x = act_random(b, n, m, 1), y = act_random(b, n, m, 1);
            int32_t pos[40];
            start(b, &mark);
            struct tensor dx = to_device(&b->gpu, &x.t, i % 2 * 8), dy = to_device(&b->gpu, &y.t, i % 2 * 8);
            int32_t *dpos = run_scratch(&b->gpu.run, n, sizeof *dpos);
            positions(&b->cpu.run, pos, (size_t)starts[i % 3], n);
            positions(&b->gpu.run, dpos, (size_t)starts[i % 3], n);
            rope(&b->cpu.run, &x.t, heads, pos, 10000.0f);
            rope(&b->gpu.run, &dx, heads, dpos, 10000.0f);
            check_device(&b->gpu, "rope", &dx, &x.t, b->tolerance > 0 ? 1e-3 : 0);
            add(&b->cpu.run, &x.t, &y.t);
            add(&b->gpu.run, &dx, &dy);
            check_device(&b->gpu, "add", &dx, &x.t, b->tolerance > 0 ? 1e-3 : 0);
            finish(b, mark);
            matrix_free(&x), matrix_free(&y);
        }
}

static void tables_agree(void **state)
{
    (void)state;
    static const int32_t ids[] = {6, 0, 3, 3, 5};
    FOR_MODES(b)
    {
        struct arena_mark mark;
        struct weight table = weight_of(b, 7, 40), grid = weight_of(b, 8 * 8, 24), line = weight_of(b, 15, 16);
        struct matrix rows = matrix_alloc(5, 40, 0);
        start(b, &mark);
        struct tensor dtable = weight_to_device(&b->gpu, &table.t), drows = poisoned(&b->gpu, 5, 40, 3, false);
        int32_t *dids = run_scratch(&b->gpu.run, 5, sizeof *dids);
        upload_ids(&b->gpu.run, dids, ids, 5);
        embed(&b->cpu.run, &rows.t, &table.t, ids);
        embed(&b->gpu.run, &drows, &dtable, dids);
        check_device(&b->gpu, "embed", &drows, &rows.t, 0);
        struct tensor first = tensor_rows(&table.t, 1, 5), dfirst = tensor_rows(&dtable, 1, 5);
        copy(&b->cpu.run, &rows.t, &first);
        copy(&b->gpu.run, &drows, &dfirst);
        check_device(&b->gpu, "copy", &drows, &rows.t, 0);
        struct tensor dgrid = weight_to_device(&b->gpu, &grid.t), dline = weight_to_device(&b->gpu, &line.t);
        for (size_t g = 3; g <= 11; g++) {
            struct matrix y = matrix_alloc(g * g, 24, 0), z = matrix_alloc(2 * g - 1, 16, 0);
            struct tensor dy = poisoned(&b->gpu, g * g, 24, 0, false), dz = poisoned(&b->gpu, 2 * g - 1, 16, 0, false);
            resize_2d(&b->cpu.run, &y.t, &grid.t, 8, g);
            resize_2d(&b->gpu.run, &dy, &dgrid, 8, g);
            check_device(&b->gpu, "resize_2d", &dy, &y.t, 0);
            resize_1d(&b->cpu.run, &z.t, &line.t);
            resize_1d(&b->gpu.run, &dz, &dline);
            check_device(&b->gpu, "resize_1d", &dz, &z.t, 0);
            matrix_free(&y), matrix_free(&z);
        }
        finish(b, mark);
        matrix_free(&rows);
        weight_free(&table), weight_free(&grid), weight_free(&line);
    }
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

static void relpos_agrees(void **state)
{
    (void)state;
    static const struct {
        struct relpos_shape s;
        size_t d;
    } cases[] = {{{1, 5, 6, 2, 0}, 16},   {{2, 9, 9, 2, 4}, 64},   {{1, 14, 14, 1, 14}, 64}, {{1, 16, 16, 3, 14}, 64},
                 {{1, 12, 12, 2, 0}, 64}, {{1, 3, 70, 1, 0}, 128}, {{1, 4, 4, 2, 0}, 20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        FOR_MODES(b)
        {
            struct relpos_shape s = cases[i].s;
            size_t n = s.n_views * s.gh * s.gw, c = s.n_heads * cases[i].d;
            struct arena_mark mark;
            struct matrix qkv = act_random(b, n, 3 * c, 1), y = matrix_alloc(n, c, 0);
            struct weight rel_h = weight_of(b, 2 * (s.window ? s.window : s.gh) - 1, cases[i].d);
            struct weight rel_w =
                weight_random(rel_h.t.dtype, 2 * (s.window ? s.window : s.gw) - 1, cases[i].d, 0, seed_of());
            struct weight v = weight_of(b, 1, 3 * c);
            struct tensor pad = vector_of(&v);
            start(b, &mark);
            struct tensor dqkv = to_device(&b->gpu, &qkv.t, 0), dy = poisoned(&b->gpu, n, c, 0, false);
            struct tensor dh = weight_to_device(&b->gpu, &rel_h.t), dw = weight_to_device(&b->gpu, &rel_w.t);
            struct tensor dpad = weight_to_device(&b->gpu, &pad);
            attention_relpos(&b->cpu.run, &y.t, &qkv.t, &pad, &rel_h.t, &rel_w.t, s);
            attention_relpos(&b->gpu.run, &dy, &dqkv, &dpad, &dh, &dw, s);
            check_device(&b->gpu, "attention_relpos", &dy, &y.t, 2 * b->tolerance);
            finish(b, mark);
            matrix_free(&qkv), matrix_free(&y);
            weight_free(&rel_h), weight_free(&rel_w), weight_free(&v);
        }
}

static void prefix_agrees(void **state)
{
    (void)state;
    static const struct {
        size_t n_seqs, n, heads, kv_heads, d, prefix;
    } cases[] = {{1, 1, 1, 1, 16, 0},
                 {2, 70, 4, 2, 16, 35},
                 {1, 130, 2, 1, 64, 65},
                 {3, 17, 2, 2, 64, 17},
                 {1, 90, 2, 2, 20, 10}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        FOR_MODES(b)
        {
            size_t rows = cases[i].n_seqs * cases[i].n, c = cases[i].heads * cases[i].d,
                   kc = cases[i].kv_heads * cases[i].d;
            struct arena_mark mark;
            struct matrix q = act_random(b, rows, c, 2), k = act_random(b, rows, kc, 2), v = act_random(b, rows, kc, 1);
            struct matrix y = matrix_alloc(rows, c, 0);
            start(b, &mark);
            struct tensor dq = to_device(&b->gpu, &q.t, 0), dk = to_device(&b->gpu, &k.t, 8),
                          dv = to_device(&b->gpu, &v.t, 0), dy = poisoned(&b->gpu, rows, c, 0, false);
            attention_prefix(&b->cpu.run, &y.t, &q.t, &k.t, &v.t, cases[i].heads, cases[i].kv_heads, cases[i].n_seqs,
                             cases[i].prefix);
            attention_prefix(&b->gpu.run, &dy, &dq, &dk, &dv, cases[i].heads, cases[i].kv_heads, cases[i].n_seqs,
                             cases[i].prefix);
            check_device(&b->gpu, "attention_prefix", &dy, &y.t, 2 * b->tolerance);
            finish(b, mark);
            matrix_free(&q), matrix_free(&k), matrix_free(&v), matrix_free(&y);
        }
}

/* Chunks of a sequence one after the other; those of one row are steps. */
static void causal_agrees(void **state)
{
    (void)state;
    static const size_t chunks[] = {1, 3, 61, 1, 100, 1, 1, 40, 300, 1, 1, 2, 900, 1, 1};
    static const struct {
        size_t heads, kv_heads, d;
    } cases[] = {{2, 2, 16}, {4, 2, 64}, {2, 2, 128}, {2, 1, 20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        FOR_MODES(b)
        {
            size_t heads = cases[i].heads, kvh = cases[i].kv_heads, d = cases[i].d, capacity = 1472, pos = 0;
            struct arena_mark mark;
            start(b, &mark);
            float *cache = calloc(2 * capacity * kvh * d, sizeof *cache);
            assert_non_null(cache);
            struct kv_layer host = {cache, cache + capacity * kvh * d, kvh, d, capacity}, on_device = host;
            struct tensor memory = poisoned(&b->gpu, 2 * kvh * capacity, d, 0, false);
            struct tensor values = tensor_rows(&memory, kvh * capacity, kvh * capacity);
            on_device.k = memory.data;
            on_device.v = values.data;
            for (size_t c = 0; c < sizeof chunks / sizeof *chunks && (!quick || pos < 300); c++) {
                size_t n = chunks[c];
                struct arena_mark inner = arena_save(b->gpu.run.arena);
                struct matrix q = act_random(b, n, heads * d, 2), k = act_random(b, n, kvh * d, 2),
                              v = act_random(b, n, kvh * d, 1), y = matrix_alloc(n, heads * d, 0);
                struct tensor dq = to_device(&b->gpu, &q.t, 0), dk = to_device(&b->gpu, &k.t, 0),
                              dv = to_device(&b->gpu, &v.t, 8), dy = poisoned(&b->gpu, n, heads * d, 0, false);
                attention_causal(&b->cpu.run, &y.t, &q.t, &k.t, &v.t, &host, heads, pos);
                attention_causal(&b->gpu.run, &dy, &dq, &dk, &dv, &on_device, heads, pos);
                check_device(&b->gpu, n == 1 ? "attention_causal, step" : "attention_causal", &dy, &y.t,
                             2 * b->tolerance);
                pos += n;
                arena_restore(b->gpu.run.arena, inner);
                matrix_free(&q), matrix_free(&k), matrix_free(&v), matrix_free(&y);
            }
            free(cache);
            finish(b, mark);
        }
}

/* ---- experts ----------------------------------------------------------------------------------------------------- */

static void moe_agrees(void **state)
{
    (void)state;
    static const struct {
        size_t n, dim, experts, top_k, hidden, shared;
        bool norm;
    } cases[] = {{1, 64, 8, 3, 32, 64, false},     {5, 64, 8, 3, 32, 64, true},    {1, 320, 8, 2, 192, 0, true},
                 {70, 128, 64, 6, 96, 192, false}, {400, 64, 5, 2, 64, 32, false}, {3, 20, 4, 2, 12, 20, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        FOR_MODES(b)
        {
            size_t n = cases[i].n, dim = cases[i].dim, n_experts = cases[i].experts, hidden = cases[i].hidden;
            struct arena_mark mark;
            struct matrix x = act_random(b, n, dim, 1), y = matrix_alloc(n, dim, 0);
            struct weight w[3 * 65 + 1];
            struct mlp_weights host[65], dev[65];
            size_t n_weights = 0;
            enum dtype dtype = b->mode == DEVICE_F32 && i % 2 ? DTYPE_F32 : DTYPE_BF16;
            start(b, &mark);
            for (size_t e = 0; e <= n_experts; e++) { /* the last: the shared one */
                size_t h = e < n_experts ? hidden : cases[i].shared;
                memset(&host[e], 0, sizeof host[e]);
                memset(&dev[e], 0, sizeof dev[e]);
                if (!h)
                    continue;
                struct tensor *to[] = {&host[e].gate, &host[e].up, &host[e].down},
                              *dto[] = {&dev[e].gate, &dev[e].up, &dev[e].down};
                for (int j = 0; j < 3; j++) {
                    w[n_weights] = weight_random(dtype, j < 2 ? h : dim, j < 2 ? dim : h, 0, seed_of());
                    *to[j] = w[n_weights++].t;
                    *dto[j] = weight_to_device(&b->gpu, to[j]);
                }
            }
            w[n_weights++] = weight_random(dtype, n_experts, dim, 0, seed_of());
            struct moe_weights moe_host = {.router = w[n_weights - 1].t,
                                           .experts = host,
                                           .shared = host[n_experts],
                                           .n_experts = n_experts,
                                           .top_k = cases[i].top_k,
                                           .norm_topk = cases[i].norm,
                                           .routed_scale = 1.5f};
            struct moe_weights moe_dev = moe_host;
            moe_dev.router = weight_to_device(&b->gpu, &moe_host.router);
            moe_dev.experts = dev;
            moe_dev.shared = dev[n_experts];
            struct tensor dx = to_device(&b->gpu, &x.t, 0), dy = poisoned(&b->gpu, n, dim, 0, false);
            moe(&b->cpu.run, &y.t, &x.t, &moe_host);
            moe(&b->gpu.run, &dy, &dx, &moe_dev);
            check_device(&b->gpu, "moe", &dy, &y.t, 2 * b->tolerance);
            finish(b, mark);
            matrix_free(&x), matrix_free(&y);
            for (size_t j = 0; j < n_weights; j++)
                weight_free(&w[j]);
        }
}

static void softmax_topk_agrees(void **state)
{
    (void)state;
    FOR_MODES(b)
    {
        struct arena_mark mark;
        struct matrix logits = matrix_random(33, 64, 0, 4, FATHOM_F32, seed_of());
        int32_t ids[33 * 6];
        float weights[33 * 6], got[33 * 6];
        *matrix_at(&logits, 3, 7) = *matrix_at(&logits, 3, 9) = 5; /* a tie goes to the lower id */
        start(b, &mark);
        struct tensor d = run_alloc_f32(&b->gpu.run, 33, 64), out = run_alloc_f32(&b->gpu.run, 33, 6);
        struct fathom_err err = {0};
        float packed[33 * 64];
        for (size_t i = 0; i < 33; i++)
            memcpy(packed + i * 64, tensor_row(&logits.t, i), 64 * sizeof(float));
        assert_int_equal(b->gpu.run.device->put(b->gpu.run.device, d.data, packed, sizeof packed, &err), FATHOM_OK);
        int32_t *dids = run_scratch(&b->gpu.run, 33 * 6, sizeof *dids);
        softmax_topk(&b->cpu.run, &logits.t, 6, ids, weights);
        softmax_topk(&b->gpu.run, &d, 6, dids, out.data);
        download(&b->gpu.run, got, &out);
        check_values(&b->gpu, "softmax_topk", got, weights, 33 * 6, 0);

        float nan = NAN; /* shows at the next download, once */
        assert_int_equal(b->gpu.run.device->put(b->gpu.run.device, d.data, &nan, sizeof nan, &err), FATHOM_OK);
        softmax_topk(&b->gpu.run, &d, 6, dids, out.data);
        download(&b->gpu.run, got, &out);
        assert_int_equal(b->gpu.run.err.status, FATHOM_ENUMERIC);
        b->gpu.run.err = (struct fathom_err){0};
        download(&b->gpu.run, got, &out);
        finish(b, mark);
        matrix_free(&logits);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_agrees),       cmocka_unit_test(logits_are_not_rounded),
        cmocka_unit_test(swiglu_agrees),       cmocka_unit_test(conv2d_agrees),
        cmocka_unit_test(norms_agree),         cmocka_unit_test(rope_and_add_agree),
        cmocka_unit_test(tables_agree),        cmocka_unit_test(relpos_agrees),
        cmocka_unit_test(prefix_agrees),       cmocka_unit_test(causal_agrees),
        cmocka_unit_test(softmax_topk_agrees), cmocka_unit_test(moe_agrees),
    };
    for (int i = 0; i < N_DEVICE_MODES; i++) {
        modes[i].mode = (enum device_mode)i;
        modes[i].tolerance = i == DEVICE_BF16 ? FAST_TOLERANCE : 0;
        if (!device_run_init(&modes[i].gpu, modes[i].mode))
            return 77;
        memset(&modes[i].cpu, 0, sizeof modes[i].cpu);
        arena_init(&modes[i].cpu.arena, (size_t)1 << 30);
        modes[i].cpu.run =
            (struct run){.kernels = kernels_select(NULL), .arena = &modes[i].cpu.arena, .act = mode_act(modes[i].mode)};
        if (pool_create(pool_default_threads(), &modes[i].cpu.run.pool, NULL))
            return 1;
    }
    quick = (argc > 1 && strcmp(argv[1], "quick") == 0) || strcmp(modes[0].gpu.run.device->name, "emulator") == 0;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int i = 0; i < N_DEVICE_MODES; i++) {
        device_run_close(&modes[i].gpu);
        pool_destroy(modes[i].cpu.run.pool);
        arena_release(&modes[i].cpu.arena);
    }
    return failed;
}
