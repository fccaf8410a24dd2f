/* DeepSeek-V4, the whole tiny model of v4_tiny_config.json against the reference (golden_v4): logits within 2e-4, the same
 * best token at every position, the same choice of entries, the residual streams layer by layer. */
#include <stdio.h>

#include "golden/golden.h"
#include "tiny_v4.h"

#define LIMIT 2e-4

static struct safetensors golden;
static struct v4_net *net;

static const size_t lengths[] = {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 19, 20, 21, 23, 24, 31, 32, 33, 64, 100, 200};
#define N_LENGTHS (sizeof lengths / sizeof *lengths)

static int setup(void **state)
{
    (void)state;
    struct v4_config c = v4_tiny_config();
    golden = golden_open("tests/golden/golden_v4.safetensors");
    net = v4_net_create(&c, 2);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    v4_net_destroy(net);
    safetensors_close(&golden);
    return 0;
}

static const void *data_of(const char *format, size_t n)
{
    char name[64];
    snprintf(name, sizeof name, format, n);
    return golden_get(&golden, name)->data;
}

static int32_t best_of(const float *logits, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        best = logits[i] > logits[best] ? i : best;
    return (int32_t)best;
}

static void logits_of_every_length(void **state)
{
    static const char *const levels[] = {"ref", "avx2", "avx512"};
    const int32_t *ids = data_of("v4.tiny.tokens", 0);
    size_t vocab = net->model.cfg.vocab_size;
    float *logits = malloc(200 * vocab * sizeof *logits), *first = malloc(200 * vocab * sizeof *first);
    double worst = 0;
    (void)state;
    assert_non_null(logits);
    assert_non_null(first);
    for (size_t i = 0; i < N_LENGTHS; i++) {
        size_t n = lengths[i], first_level = n > 20; /* the scalar definition takes its time */
        for (size_t l = first_level; l < 3; l++) {
            struct v4_state *s = v4_net_state(net, n);
            struct run run = v4_net_run(net, levels[l]);
            v4_net_append(&run, net, s, ids, n, logits);
            if (l == first_level)
                memcpy(first, logits, n * vocab * sizeof *first);
            assert_memory_equal(logits, first, n * vocab * sizeof *first); /* the same bits at every level */
            double distance = relative_l2(logits + (n - 1) * vocab, data_of("v4.tiny.logits.%zu", n), vocab);
            worst = distance > worst ? distance : worst;
            if (!(distance <= LIMIT))
                fail_msg("logits of %zu tokens are %.2e away", n, distance);
            const int32_t *best = data_of("v4.tiny.argmax.%zu", n);
            for (size_t p = 0; p < n; p++)
                assert_int_equal(best_of(logits + p * vocab, vocab), best[p]);
            v4_net_forget(s);
        }
    }
    print_message("logits: at most %.2e away\n", worst);
    free(logits);
    free(first);
}

/* What the indexer chose in the layers that have one, and the streams of the last token. */
struct seen {
    int32_t chosen[8][200 * 4];
    float hidden[8][512];
    size_t n_chosen, n_merged;
};

static void look(void *ctx, const char *op, const struct tensor *out)
{
    struct seen *s = ctx;
    if (!strcmp(op, "index_topk"))
        memcpy(s->chosen[s->n_chosen++], out->data, tensor_elements(out) * sizeof(int32_t));
    else if (!strcmp(op, "hyper_merge") && ++s->n_merged % 2 == 0)
        memcpy(s->hidden[s->n_merged / 2], tensor_row(out, out->shape[0] - 1), 512 * sizeof(float));
}

static void layers_and_choices(void **state)
{
    static const size_t some[] = {16, 20, 100, 200};
    const int32_t *ids = data_of("v4.tiny.tokens", 0);
    struct seen *seen = malloc(sizeof *seen);
    (void)state;
    assert_non_null(seen);
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        size_t n = some[i];
        struct v4_state *s = v4_net_state(net, n);
        struct run run = v4_net_run(net, NULL);
        s->indexer = V4_INDEXER_ALWAYS;
        seen->n_chosen = seen->n_merged = 0;
        run.trace = look;
        run.trace_ctx = seen;
        v4_net_append(&run, net, s, ids, n, NULL);
        const float *hidden = data_of("v4.tiny.hidden.%zu", n);
        for (size_t l = 1; l < 6; l++) { /* the first row is the embedding */
            double distance = relative_l2(seen->hidden[l], hidden + l * 512, 512);
            if (!(distance <= LIMIT))
                fail_msg("%zu tokens: the streams after layer %zu are %.2e away", n, l - 1, distance);
        }
        assert_int_equal(seen->n_chosen, 2);
        const int32_t *want[2] = {data_of("v4.tiny.index.layer2.%zu", n), data_of("v4.tiny.index.layer4.%zu", n)};
        char name[64];
        snprintf(name, sizeof name, "v4.tiny.index.layer2.%zu", n);
        size_t width = golden_get(&golden, name)->shape[1]; /* the reference keeps min(4, entries) columns */
        for (size_t l = 0; l < 2; l++)
            for (size_t p = 0; p < n; p++)
                for (size_t k = 0; k < 4; k++)
                    assert_int_equal(seen->chosen[l][p * 4 + k], k < width ? want[l][p * width + k] : -1);
        v4_net_forget(s);
    }
    free(seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(logits_of_every_length), cmocka_unit_test(layers_and_choices)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
