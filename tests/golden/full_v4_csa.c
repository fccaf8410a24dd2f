/* One CSA attention layer of DeepSeek-V4-Flash at its published size over 2,600 tokens against the reference (golden_v4):
 * output rows and index scores within 2e-4, the choice of 512 entries equal. It crosses position 2,051, where the first
 * query has more candidates than are chosen; on both sides of it the indexer left out and the indexer always run give the
 * same bits, decoding and prefilling alike. */
#include "golden/golden.h"
#include "tiny_v4.h"

enum { N = 2600, DIM = 4096, LAYER = 2, TOP_K = 512, SAVED = 2040, STEPS = 20, N_INDEX_ROWS = 6, MAX_ENTRIES = 650 };

static const size_t out_rows[] = {0,    1,    2,    3,    4,    7,    127,  128,  131, 1000,
                                  2046, 2047, 2048, 2050, 2051, 2052, 2055, 2300, 2599};
static const size_t index_rows[N_INDEX_ROWS] = {2050, 2051, 2052, 2055, 2300, 2599};

/* Scores and choices of the index_rows, as they go by. */
struct seen {
    size_t pos; /* of the first query that the indexer runs for */
    float scores[N_INDEX_ROWS][MAX_ENTRIES];
    int32_t chosen[N_INDEX_ROWS][TOP_K];
    bool has[N_INDEX_ROWS];
};

static void look(void *ctx, const char *op, const struct tensor *out)
{
    struct seen *s = ctx;
    bool is_scores = !strcmp(op, "index_scores");
    if (!is_scores && strcmp(op, "index_topk"))
        return;
    for (size_t i = 0; i < N_INDEX_ROWS; i++) {
        size_t p = index_rows[i];
        if (p < s->pos || p >= s->pos + out->shape[0])
            continue;
        if (is_scores) {
            memcpy(s->scores[i], tensor_row(out, p - s->pos), (p + 1) / 4 * sizeof(float));
            s->has[i] = true;
        } else {
            memcpy(s->chosen[i], tensor_row(out, p - s->pos), TOP_K * sizeof(int32_t));
        }
    }
}

static void attend(struct v4_net *net, struct v4_state *s, struct seen *seen, const float *input, float *output,
                   size_t first, size_t end)
{
    struct run run = v4_net_run(net, NULL);
    struct tensor a = tensor_2d(DTYPE_F32, (float *)input + first * DIM, end - first, DIM);
    struct tensor u = tensor_2d(DTYPE_F32, output + first * DIM, end - first, DIM);
    size_t first_scored = s->indexer == V4_INDEXER_ALWAYS ? 0 : 4 * (TOP_K + 1) - 1;
    seen->pos = first > first_scored ? first : first_scored;
    run.trace = look;
    run.trace_ctx = seen;
    v4_attend(&run, &net->model, LAYER, s, &u, &a, first);
    assert_string_equal(run.err.message, "");
    s->n_tok = end;
}

static void check_choices(const struct safetensors *golden, const struct seen *seen)
{
    const float *scores = golden_get(golden, "v4.flash.csa.score")->data;
    const int32_t *chosen = golden_get(golden, "v4.flash.csa.index")->data;
    size_t n_columns = golden_get(golden, "v4.flash.csa.score")->shape[1];
    assert_int_equal(n_columns, MAX_ENTRIES);
    for (size_t i = 0; i < N_INDEX_ROWS; i++) {
        assert_true(seen->has[i]);
        double distance = relative_l2(seen->scores[i], scores + i * n_columns, (index_rows[i] + 1) / 4);
        print_message("scores of position %zu: %.2e\n", index_rows[i], distance);
        assert_true(distance <= 2e-4);
        assert_memory_equal(seen->chosen[i], chosen + i * TOP_K, sizeof seen->chosen[i]);
    }
}

static void flash_layer(void **state)
{
    static struct seen seen;
    struct safetensors golden = golden_open("tests/golden/golden_v4.safetensors");
    struct v4_net *net = calloc(1, sizeof *net);
    struct v4_tensor *tensors = NULL;
    struct v4_config c;
    struct fathom_err err = {0};
    struct v4_snapshot saved;
    size_t n;
    float *input = malloc(sizeof(float) * N * DIM), *output = malloc(sizeof(float) * N * DIM);
    float *always = malloc(sizeof(float) * N * DIM);
    (void)state;
    assert_true(net && input && output && always);

    static const char flash[] = "{\"model_type\": \"deepseek_v4\"}";
    assert_int_equal(v4_config_parse(&c, flash, sizeof flash - 1, &err), FATHOM_OK);
    c.n_layers = LAYER + 1;
    arena_init(&net->arena, SIZE_MAX);
    if (pool_create(pool_default_threads(), &net->pool, &err) || v4_attention_tensors(&tensors, &n, &c, LAYER, &err) ||
        synth_v4_weights(&net->weights, tensors, n, c.n_experts, net->pool, &err) ||
        v4_bind_attention(&net->model, &c, LAYER, net->weights, &err))
        fail_msg("%s", err.message);
    free(tensors);
    synth_fill_f32_rounded(input, "v4.flash.csa.input", 0, (size_t)N * DIM, 0, 1, net->pool);

    struct v4_state *s = v4_net_state(net, N);
    for (size_t first = 0; first < SAVED; first += 510)
        attend(net, s, &seen, input, output, first, first + 510);
    assert_int_equal(v4_state_save(s, &saved, &err), FATHOM_OK);
    for (size_t p = SAVED; p < SAVED + STEPS; p++)
        attend(net, s, &seen, input, output, p, p + 1);
    attend(net, s, &seen, input, output, SAVED + STEPS, N);
    assert_int_equal(s->stats.unindexed_queries, 2051);
    assert_int_equal(s->stats.indexed_queries, N - 2051);

    v4_state_reset(s);
    assert_int_equal(v4_state_restore(s, &saved, &err), FATHOM_OK);
    s->indexer = V4_INDEXER_ALWAYS;
    attend(net, s, &seen, input, always, SAVED, N);
    assert_memory_equal(always + (size_t)SAVED * DIM, output + (size_t)SAVED * DIM, sizeof(float) * (N - SAVED) * DIM);

    const float *want = golden_get(&golden, "v4.flash.csa.out")->data;
    double worst = 0;
    for (size_t i = 0; i < sizeof out_rows / sizeof *out_rows; i++) {
        double distance = relative_l2(output + out_rows[i] * DIM, want + i * DIM, DIM);
        worst = distance > worst ? distance : worst;
        if (!(distance <= 2e-4))
            fail_msg("the output of position %zu is %.2e away", out_rows[i], distance);
    }
    print_message("outputs: at most %.2e away\n", worst);
    check_choices(&golden, &seen);

    v4_snapshot_release(&saved);
    v4_net_forget(s);
    v4_net_destroy(net);
    safetensors_close(&golden);
    free(input);
    free(output);
    free(always);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(flash_layer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
