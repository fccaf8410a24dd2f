/* Three layers of V4-Flash's widths with 16 experts (CSA with experts by hash, HCA and a sliding one with biased experts) in
 * FP8 and FP4: a prefill and steps give the bits of the same weights in bf16, so nothing of the formats' own noise is added
 * to what the weights say. */
#include "base/clock.h"
#include "v4_native.h"

enum { N_PROMPT = 127, N = 131 }; /* a step closes the first HCA entry */

static void logits_of(struct v4_net *net, const struct weights *w, const struct v4_config *c, float *logits)
{
    struct fathom_err err = {0};
    int32_t ids[N];
    double start = clock_ms();
    if (v4_bind(&net->model, c, w, &err))
        fail_msg("%s", err.message);
    struct v4_state *s = v4_net_state(net, N);
    struct run run = v4_net_run(net, NULL);
    for (size_t i = 0; i < N; i++)
        ids[i] = (int32_t)(i * i * 31 % c->vocab_size);
    v4_net_append(&run, net, s, ids, N_PROMPT, logits);
    for (size_t i = N_PROMPT; i < N; i++)
        v4_net_append(&run, net, s, ids + i, 1, logits + i * c->vocab_size);
    print_message("%.0f ms\n", clock_ms() - start);
    v4_net_forget(s);
    v4_release(&net->model);
}

static void flash_widths(void **state)
{
    static const char flash[] = "{\"model_type\": \"deepseek_v4\", \"num_hidden_layers\": 3, \"n_routed_experts\": 16, "
                                "\"num_hash_layers\": 1, \"compress_ratios\": [4, 128, 0], \"vocab_size\": 1000, "
                                "\"quantization_config\": {\"fmt\": \"e4m3\"}}";
    struct v4_config c;
    struct v4_tensor *tensors;
    struct weights *native, *wide;
    struct v4_net *net = calloc(1, sizeof *net);
    struct fathom_err err = {0};
    size_t n, native_bytes = 0;
    double start = clock_ms();
    (void)state;
    assert_non_null(net);
    assert_int_equal(v4_config_parse(&c, flash, sizeof flash - 1, &err), FATHOM_OK);
    float *got = calloc(N, c.vocab_size * sizeof *got), *want = calloc(N, c.vocab_size * sizeof *want);
    assert_true(got && want);
    arena_init(&net->arena, SIZE_MAX);
    if (pool_create(pool_default_threads(), &net->pool, &err) || v4_tensors(&tensors, &n, &c, &err) ||
        synth_v4_weights(&native, tensors, n, c.n_experts, net->pool, &err))
        fail_msg("%s", err.message);
    for (size_t i = 0; i < n; i++)
        native_bytes += weights_at(native, i)->bytes;
    print_message("%.2f GB of weights made in %.1f s\n", (double)native_bytes * 1e-9, (clock_ms() - start) * 1e-3);
    logits_of(net, native, &c, got);
    wide = native_expand(native, tensors, n, net->pool);
    weights_close(native);
    logits_of(net, wide, &c, want);
    weights_close(wide);
    assert_memory_equal(got, want, N * c.vocab_size * sizeof *got);
    for (size_t i = 0; i < N * c.vocab_size; i++)
        assert_true(got[i] == got[i] && got[i] < 1e4f && got[i] > -1e4f);

    assert_int_equal(net->arena.used_bytes, 0);
    pool_destroy(net->pool);
    arena_release(&net->arena);
    free(net), free(tensors), free(got), free(want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(flash_widths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
