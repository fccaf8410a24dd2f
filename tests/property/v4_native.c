/* FP8 and FP4 checkpoints: a folder of shards, read by mapping, gives the bits of the same weights in bf16, at every level, for
 * every chunking, with FP4 and with FP8 experts. */
#include <stdio.h>

#include "support.h"
#include "v4_native.h"

enum { N = 90 };

static void logits_of(struct v4_net *net, const struct weights *w, const struct v4_config *c, const char *level,
                      size_t chunk, float *logits)
{
    struct fathom_err err = {0};
    int32_t ids[N];
    if (v4_bind(&net->model, c, w, &err))
        fail_msg("%s", err.message);
    struct v4_state *s = v4_net_state(net, N);
    struct run run = v4_net_run(net, level);
    for (size_t i = 0; i < N; i++)
        ids[i] = (int32_t)(i * i * 31 % c->vocab_size);
    for (size_t at = 0; at < N; at += chunk) {
        size_t n = N - at < chunk ? N - at : chunk;
        v4_net_append(&run, net, s, ids + at, n, logits + at * c->vocab_size);
    }
    v4_net_forget(s);
    v4_release(&net->model);
}

static void check(const struct v4_config *c)
{
    static const char *const levels[] = {"ref", "avx2", "avx512"};
    struct v4_tensor *tensors;
    struct weights *native, *wide;
    struct v4_net *net = calloc(1, sizeof *net);
    struct fathom_err err = {0};
    size_t n, bytes = N * c->vocab_size * sizeof(float);
    char *dir = temp_create();
    float *want = malloc(bytes), *got = malloc(bytes);
    assert_true(net && want && got);
    arena_init(&net->arena, SIZE_MAX);
    assert_int_equal(pool_create(3, &net->pool, NULL), FATHOM_OK);
    assert_int_equal(v4_tensors(&tensors, &n, c, NULL), FATHOM_OK);

    /* Three shards, of which the index knows, and of tensors that nobody asks for. */
    char *index = temp_path(dir, "model.safetensors.index.json"), name[64];
    FILE *f = fopen(index, "w");
    assert_non_null(f);
    fprintf(f, "{\"metadata\": {}, \"weight_map\": {\n");
    for (size_t shard = 0; shard < 3; shard++) {
        size_t first = shard * n / 3, end = (shard + 1) * n / 3;
        snprintf(name, sizeof name, "model-%05zu-of-00003.safetensors", shard + 1);
        char *path = temp_path(dir, name);
        native_write(path, tensors + first, end - first, c->n_experts, net->pool);
        free(path);
        for (size_t i = first; i < end; i++)
            fprintf(f, "%s\"%s\": \"%s\"", i ? ",\n" : "", tensors[i].name, name);
    }
    fprintf(f, "}}\n");
    fclose(f);
    if (weights_open(&native, dir, &err))
        fail_msg("%s", err.message);
    wide = native_expand(native, tensors, n, net->pool);
    logits_of(net, wide, c, "ref", N, want);
    for (size_t l = 0; l < 3; l++) /* levels that the processor lacks become the next lower one */
        for (size_t chunk = 1; chunk <= N; chunk = chunk == 1 ? 3 : chunk == 3 ? 40 : chunk == 40 ? N : N + 1) {
            logits_of(net, native, c, levels[l], chunk, got);
            assert_memory_equal(got, want, bytes);
        }
    weights_close(native), weights_close(wide);
    assert_int_equal(net->arena.used_bytes, 0);
    pool_destroy(net->pool);
    arena_release(&net->arena);
    free(net), free(tensors), free(index), free(want), free(got);
    temp_remove(dir);
}

static void fp4_experts(void **state)
{
    struct v4_config c = v4_tiny_config();
    (void)state;
    c.is_quantised = true;
    check(&c);
}

/* As the published base models are. Widths that are no multiple of a block. */
static void fp8_experts(void **state)
{
    struct v4_config c = v4_tiny_config();
    (void)state;
    c.is_quantised = c.has_fp8_experts = true;
    c.dim = 136;
    c.q_rank = 50;
    c.expert_dim = 150;
    check(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fp4_experts), cmocka_unit_test(fp8_experts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
