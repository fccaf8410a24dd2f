/* DeepSeek-V4 sequences: whatever the sizes, the chunks, the instruction set, the neighbours and the detours through a
 * snapshot, the logits and the state have the bits of one prefill; and leaving the indexer out where it has no choice
 * changes none. */
#include "nn/v4_rounding.h"
#include <stdio.h>

#include "tiny_v4.h"

static uint64_t random_below(uint64_t *state, uint64_t n)
{
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = *state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % n;
}

/* Logits of every position and the state after them. */
struct result {
    float *logits;
    struct v4_snapshot state;
};

static struct result result_of(const struct v4_state *s, float *logits)
{
    struct result r = {.logits = logits};
    assert_int_equal(v4_state_save(s, &r.state, NULL), FATHOM_OK);
    return r;
}

static float *logits_alloc(const struct v4_net *net, size_t n)
{
    float *logits = malloc(n * net->model.cfg.vocab_size * sizeof *logits);
    assert_non_null(logits);
    return logits;
}

static struct result one_shot(struct v4_net *net, const int32_t *ids, size_t n, size_t n_ctx, const char *level,
                              enum v4_indexer indexer, struct v4_stats *stats)
{
    struct v4_state *s = v4_net_state(net, n_ctx);
    struct run run = v4_net_run(net, level);
    float *logits = logits_alloc(net, n);
    s->indexer = indexer;
    v4_net_append(&run, net, s, ids, n, logits);
    struct result r = result_of(s, logits);
    if (stats)
        *stats = s->stats;
    v4_net_forget(s);
    return r;
}

static void assert_same(const struct v4_net *net, const struct result *a, const struct result *b, size_t n,
                        const char *what)
{
    size_t vocab = net->model.cfg.vocab_size;
    for (size_t p = 0; p < n; p++)
        if (memcmp(a->logits + p * vocab, b->logits + p * vocab, vocab * sizeof *a->logits))
            fail_msg("%s: the logits of position %zu of %zu differ", what, p, n);
    if (a->state.n_tok != b->state.n_tok || a->state.bytes != b->state.bytes ||
        memcmp(a->state.data, b->state.data, a->state.bytes))
        fail_msg("%s: the states after %zu tokens differ", what, n);
}

static void result_free(struct result *r)
{
    free(r->logits);
    v4_snapshot_release(&r->state);
}

static void random_ids(int32_t *ids, size_t n, size_t vocab, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)random_below(&seed, vocab);
}

/* Every length up to some tokens behind the first query with a choice, for widths of the choice that are powers of two and
 * that are none. */
static void indexer_left_out(void **state)
{
    static const size_t widths[] = {1, 3, 4, 6};
    int32_t ids[64];
    (void)state;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        struct v4_config c = v4_tiny_config();
        c.index_top_k = widths[i];
        size_t first_scored = 4 * (widths[i] + 1) - 1;
        struct v4_net *net = v4_net_create(&c, 1);
        random_ids(ids, 64, c.vocab_size, i);
        for (size_t n = 1; n <= first_scored + 20; n += n == first_scored + 5 ? 15 : 1) {
            struct v4_stats with, without;
            struct result a = one_shot(net, ids, n, n, NULL, V4_INDEXER_ALWAYS, &with);
            struct result b = one_shot(net, ids, n, n, NULL, V4_INDEXER_AUTO, &without);
            assert_same(net, &b, &a, n, "without the indexer");
            size_t scored = n > first_scored ? n - first_scored : 0;
            assert_int_equal(with.indexed_queries, 2 * n); /* two layers have one */
            assert_int_equal(without.indexed_queries, 2 * scored);
            assert_int_equal(without.unindexed_queries, 2 * (n - scored));
            if (scored == 0)
                assert_int_equal(without.scored_candidates, 0);
            result_free(&a), result_free(&b);
        }
        v4_net_destroy(net);
    }
}

/* Token by token over the first choice, and in chunks that straddle it, against one prefill. */
static void over_the_first_choice(void **state)
{
    enum { N = 40, FIRST_SCORED = 19 };
    struct v4_config c = v4_tiny_config();
    struct v4_net *net = v4_net_create(&c, 2);
    int32_t ids[N];
    (void)state;
    random_ids(ids, N, c.vocab_size, 7);
    struct result want = one_shot(net, ids, N, N, NULL, V4_INDEXER_ALWAYS, NULL);
    for (size_t chunk = 1; chunk <= N; chunk += chunk < 8 ? 1 : 12)
        for (int mode = 0; mode < 2; mode++) {
            struct v4_state *s = v4_net_state(net, N);
            struct run run = v4_net_run(net, NULL);
            float *logits = logits_alloc(net, N);
            s->indexer = mode ? V4_INDEXER_ALWAYS : V4_INDEXER_AUTO;
            for (size_t p = 0; p < N; p += chunk) {
                size_t n = N - p < chunk ? N - p : chunk;
                v4_net_append(&run, net, s, ids + p, n, logits + p * c.vocab_size);
                size_t scored = p + n > FIRST_SCORED ? p + n - FIRST_SCORED : 0;
                assert_int_equal(s->stats.indexed_queries, 2 * (mode ? p + n : scored));
            }
            struct result got = result_of(s, logits);
            assert_same(net, &got, &want, N, "in chunks");
            result_free(&got);
            v4_net_forget(s);
        }
    result_free(&want);
    v4_net_destroy(net);
}

static struct v4_config random_config(uint64_t *seed)
{
    static const size_t ratios[] = {0, 4, 4, 2, 3, 8, 16};
    static const size_t head_dims[] = {16, 24, 32, 48};
    struct v4_config c = v4_tiny_config();
    c.n_layers = 1 + random_below(seed, 4);
    c.n_hash_layers = random_below(seed, c.n_layers + 1);
    for (size_t l = 0; l < c.n_layers; l++)
        c.ratio[l] = ratios[random_below(seed, sizeof ratios / sizeof *ratios)];
    c.vocab_size = 40;
    c.dim = 17 + random_below(seed, 40);
    c.o_groups = 1 + random_below(seed, 3);
    c.n_heads = c.o_groups * (1 + random_below(seed, 4));
    c.head_dim = head_dims[random_below(seed, 4)];
    c.index_n_heads = 1 + random_below(seed, 8);
    c.index_head_dim = 8 + 8 * random_below(seed, 4);
    c.rope_dim = 2 + 2 * random_below(seed, 4);
    c.q_rank = 5 + random_below(seed, 30);
    c.o_rank = 5 + random_below(seed, 30);
    c.window = 1 + random_below(seed, 12);
    c.n_experts = 2 + random_below(seed, 5);
    c.top_k = 1 + random_below(seed, c.n_experts % 3 ? c.n_experts : c.n_experts / 3); /* the hash steps by 3 */
    c.expert_dim = 8 + random_below(seed, 20);
    c.index_top_k = 1 + random_below(seed, 6);
    c.n_streams = 1 + random_below(seed, 4);
    return c;
}

/* Two sequences in turn, each in random chunks at a random level, one of them interrupted by a snapshot, some tokens of
 * something else and the way back. */
static void random_networks(void **state)
{
    enum { N = 90 };
    static const char *const levels[] = {"ref", "avx2", "avx512"};
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t random = seed * 1000;
        struct v4_config c = random_config(&random);
        struct v4_net *net = v4_net_create(&c, 1 + (int)(seed % 3));
        int32_t ids[2][N];
        struct result want[2];
        if (seed % 2 && v4_can_round_index(c.index_head_dim))
            net->numerics = V4_NUMERICS_OFFICIAL;
        struct v4_state *s[2];
        float *logits[2];
        size_t done[2] = {0, 0};
        char what[32];
        snprintf(what, sizeof what, "network %d", (int)seed);
        for (int i = 0; i < 2; i++) {
            random_ids(ids[i], N, c.vocab_size, seed + 100 * (uint64_t)i);
            want[i] = one_shot(net, ids[i], N, N, "ref", V4_INDEXER_ALWAYS, NULL);
            s[i] = v4_net_state(net, N);
            logits[i] = logits_alloc(net, N);
        }
        while (done[0] < N || done[1] < N) {
            int i = done[0] == N ? 1 : done[1] == N ? 0 : (int)random_below(&random, 2);
            size_t n = 1 + random_below(&random, random_below(&random, 2) ? 3 : 30), at = done[i];
            n = n < N - at ? n : N - at;
            struct run run = v4_net_run(net, levels[random_below(&random, 3)]);
            if (i == 1 && random_below(&random, 3) == 0) {
                struct v4_snapshot saved;
                assert_int_equal(v4_state_save(s[1], &saved, NULL), FATHOM_OK);
                assert_int_equal(saved.bytes, v4_state_bytes(s[1], at));
                v4_net_append(&run, net, s[1], ids[0], n, NULL);
                if (random_below(&random, 2))
                    v4_state_reset(s[1]);
                assert_int_equal(v4_state_restore(s[1], &saved, NULL), FATHOM_OK);
                v4_snapshot_release(&saved);
            }
            v4_net_append(&run, net, s[i], ids[i] + at, n, logits[i] + at * c.vocab_size);
            done[i] += n;
        }
        for (int i = 0; i < 2; i++) {
            struct result got = result_of(s[i], logits[i]);
            assert_same(net, &got, &want[i], N, what);
            result_free(&got), result_free(&want[i]);
            v4_net_forget(s[i]);
        }
        v4_net_destroy(net);
    }
}

/* A new sequence after a reset remembers nothing, however short it is. */
static void reset(void **state)
{
    struct v4_config c = v4_tiny_config();
    struct v4_net *net = v4_net_create(&c, 1);
    int32_t ids[50];
    (void)state;
    random_ids(ids, 50, c.vocab_size, 3);
    for (size_t n = 1; n < 9; n++) {
        struct result want = one_shot(net, ids, n, 50, NULL, V4_INDEXER_AUTO, NULL);
        struct v4_state *s = v4_net_state(net, 50);
        struct run run = v4_net_run(net, NULL);
        float *logits = logits_alloc(net, n);
        v4_net_append(&run, net, s, ids, 50, NULL);
        v4_state_reset(s);
        v4_net_append(&run, net, s, ids, n, logits);
        struct result got = result_of(s, logits);
        assert_same(net, &got, &want, n, "after a reset");
        result_free(&got), result_free(&want);
        v4_net_forget(s);
    }
    v4_net_destroy(net);
}

/* With too little memory for activations the error is recorded, whichever allocation it hits; with enough of it a state
 * that was reset serves again. */
static void out_of_memory(void **state)
{
    enum { N = 40 };
    struct v4_config c = v4_tiny_config();
    struct v4_net *net = v4_net_create(&c, 2);
    struct v4_state *s = v4_net_state(net, N);
    int32_t ids[N];
    size_t n_failed = 0;
    bool failed = true;
    (void)state;
    random_ids(ids, N, c.vocab_size, 11);
    struct result want = one_shot(net, ids, N, N, NULL, V4_INDEXER_AUTO, NULL);
    for (size_t limit = 100000; failed; limit += limit / 6) {
        struct run run = v4_net_run(net, NULL);
        struct arena_mark mark = arena_save(&net->arena);
        float *logits = logits_alloc(net, N);
        net->arena.limit_bytes = limit;
        struct tensor x = run_alloc(&run, N, c.n_streams * c.dim);
        struct tensor out = tensor_2d(DTYPE_F32, logits, N, c.vocab_size);
        v4_embed(&run, &net->model, &x, ids);
        v4_forward(&run, &net->model, s, &x, ids);
        v4_logits(&run, &net->model, &out, &x);
        arena_restore(&net->arena, mark);
        failed = !run_ok(&run);
        if (failed) {
            assert_int_equal(run.err.status, FATHOM_ENOMEM);
            free(logits);
            n_failed++;
        } else {
            struct result got = result_of(s, logits);
            assert_same(net, &got, &want, N, "after running out of memory");
            result_free(&got);
        }
        v4_state_reset(s);
    }
    assert_true(n_failed > 5);
    result_free(&want);
    v4_net_forget(s);
    v4_net_destroy(net);
}

static void refusals(void **state)
{
    struct v4_config c = v4_tiny_config();
    struct v4_net *net = v4_net_create(&c, 1);
    struct v4_state *s = v4_net_state(net, 10), *small = v4_net_state(net, 3);
    struct v4_snapshot saved;
    struct fathom_err err = {0};
    int32_t ids[11] = {0};
    (void)state;
    struct run run = v4_net_run(net, NULL);
    v4_net_append(&run, net, s, ids, 8, NULL);
    struct tensor x = run_alloc(&run, 3, c.n_streams * c.dim);
    v4_embed(&run, &net->model, &x, ids);
    v4_forward(&run, &net->model, s, &x, ids);
    assert_string_equal(run.err.message, "3 tokens after 8 do not fit the context of 10");
    assert_int_equal(run.err.status, FATHOM_ELIMIT);
    assert_int_equal(s->n_tok, 8);

    run = v4_net_run(net, NULL);
    run.act = FATHOM_BF16;
    v4_forward(&run, &net->model, s, &x, ids);
    assert_int_equal(run.err.status, FATHOM_EUNSUPPORTED);
    arena_restore(&net->arena, (struct arena_mark){0});

    assert_int_equal(v4_state_save(s, &saved, &err), FATHOM_OK);
    assert_int_equal(v4_state_restore(small, &saved, &err), FATHOM_ELIMIT);
    assert_string_equal(err.message, "a sequence of 8 tokens does not fit the context of 3");
    saved.bytes -= 4;
    assert_int_equal(v4_state_restore(s, &saved, &err), FATHOM_EINVAL);
    assert_int_equal(v4_state_create(&(struct v4_state){0}, &c, SIZE_MAX, &err), FATHOM_ELIMIT);
    v4_snapshot_release(&saved);
    v4_net_forget(s), v4_net_forget(small);
    v4_net_destroy(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(indexer_left_out), cmocka_unit_test(over_the_first_choice),
                                       cmocka_unit_test(random_networks),  cmocka_unit_test(reset),
                                       cmocka_unit_test(out_of_memory),    cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
