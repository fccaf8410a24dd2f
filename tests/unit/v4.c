/* DeepSeek-V4's config.json, its tensors and their binding: what is published, and what is refused. */
#include <math.h>
#include <stdio.h>

#include "base/fp8.h"
#include "kernel/ref/ref_ops.h"
#include "support.h"
#include "tiny_v4.h"

static enum fathom_status parse(struct v4_config *c, const char *fields, struct fathom_err *err)
{
    char text[512];
    int n = snprintf(text, sizeof text, "{\"architectures\": [\"DeepseekV4ForCausalLM\"]%s%s}", *fields ? ", " : "",
                     fields);
    return v4_config_parse(c, text, (size_t)n, err);
}

static void published(void **state)
{
    struct v4_config c;
    struct v4_tensor *tensors;
    size_t n, parameters = 0;
    (void)state;
    assert_int_equal(parse(&c, "", NULL), FATHOM_OK);
    size_t n_csa = 0, n_hca = 0;
    for (size_t l = 0; l < c.n_layers; l++) {
        n_csa += c.ratio[l] == 4;
        n_hca += c.ratio[l] == 128;
    }
    assert_int_equal(n_csa, 21);
    assert_int_equal(n_hca, 20);
    assert_int_equal(c.ratio[42], 4);
    assert_int_equal(v4_tensors(&tensors, &n, &c, NULL), FATHOM_OK);
    for (size_t i = 0; i < n; i++)
        parameters += tensors[i].dtype == DTYPE_I64 ? 0 : v4_tensor_elements(&tensors[i]);
    assert_true(fabs((double)parameters - 284.33e9) < 0.01e9); /* without the draft layer and tid2eid */
    free(tensors);

    struct v4_state s; /* bytes a token of context, float32 rows and index */
    assert_int_equal(v4_state_create(&s, &c, 1 << 20, NULL), FATHOM_OK);
    assert_int_equal(v4_state_bytes(&s, 1 << 20) - v4_state_bytes(&s, 1 << 19), (size_t)13760 << 19);
    v4_state_release(&s);
}

static void tiny(void **state)
{
    struct v4_config c = v4_tiny_config();
    (void)state;
    assert_int_equal(c.n_layers, 6);
    assert_int_equal(c.ratio[3], 16);
    assert_int_equal(c.ratio[4], 4);
    assert_int_equal(c.rope_dim, 16);
    assert_int_equal(c.n_hash_layers, 2);
    assert_true(c.swiglu_limit == 1.0f && c.routed_scale == 1.5f);
}

static void refused(void **state)
{
    static const struct {
        const char *fields, *message;
    } cases[] = {
        {"\"num_attention_heads\": 0", "num_attention_heads is 0, expected a whole number from 1 to 1024"},
        {"\"hidden_size\": 1e3", "hidden_size is 1e3, expected a whole number from 1 to 65536"},
        {"\"num_key_value_heads\": 2", "num_key_value_heads is 2, expected a whole number from 1 to 1"},
        {"\"qk_rope_head_dim\": 63",
         "qk_rope_head_dim is 63, expected an even part of head_dim 512 and of index_head_dim 128"},
        {"\"index_head_dim\": 32",
         "qk_rope_head_dim is 64, expected an even part of head_dim 512 and of index_head_dim 32"},
        {"\"o_groups\": 7", "64 heads cannot be divided into o_groups of 7"},
        {"\"num_experts_per_tok\": 300", "num_experts_per_tok is 300, but there are 256 experts"},
        {"\"num_hash_layers\": 44", "num_hash_layers is 44, but there are 43 layers"},
        {"\"num_hidden_layers\": 61", "compress_ratios is no list of 61 numbers, one for each layer"},
        {"\"compress_ratios\": [0, 4]", "compress_ratios is no list of 43 numbers, one for each layer"},
        {"\"num_hidden_layers\": 2, \"compress_ratios\": [0, 1]",
         "compress_ratios is 1, expected 0 or a number of tokens from 2 to 4096"},
        {"\"num_hidden_layers\": 1, \"compress_ratios\": [\"4\"]",
         "compress_ratios is '4', expected 0 or a number of tokens from 2 to 4096"},
        {"\"scoring_func\": \"softmax\"", "scoring_func is 'softmax', expected 'sqrtsoftplus'"},
        {"\"rope_scaling\": {\"type\": \"linear\"}", "rope_scaling.type is 'linear', expected 'yarn'"},
        {"\"hc_mult\": 9", "hc_mult is 9, expected a whole number from 1 to 8"},
        {"\"eos_token_id\": 129280", "bos_token_id 0 or eos_token_id 129280 is outside the vocabulary of 129280"},
    };
    struct v4_config c;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fathom_err err = {0};
        assert_int_not_equal(parse(&c, cases[i].fields, &err), FATHOM_OK);
        assert_string_equal(err.message, cases[i].message);
    }
    struct fathom_err err = {0};
    assert_int_equal(v4_config_parse(&c, "[]", 2, &err), FATHOM_EFORMAT);
    assert_int_equal(v4_config_parse(&c, "{}", 2, &err), FATHOM_EUNSUPPORTED);
    assert_int_equal(v4_config_read(&c, "tests/golden/none.json", &err), FATHOM_EIO);
}

/* The check values of spec deepseek-v4 §2.5. */
static void frequencies(void **state)
{
    static const struct {
        int table;
        size_t i;
        double f;
    } want[] = {{1, 0, 1},
                {1, 1, 0.687656045},
                {1, 8, 0.05},
                {1, 15, 0.00363553851},
                {1, 16, 0.00226562493},
                {1, 20, 0.000296977785},
                {1, 24, 1.95312532e-05},
                {1, 25, 5.37231244e-06},
                {1, 31, 5.6805294e-07},
                {0, 1, 0.749894202},
                {0, 16, 0.01},
                {0, 31, 0.00013335215}};
    struct v4_config c;
    struct v4 *m = malloc(sizeof *m);
    struct weights *none;
    struct fathom_err err = {0};
    (void)state;
    assert_non_null(m);
    assert_int_equal(parse(&c, "", NULL), FATHOM_OK);
    assert_int_equal(weights_create(&none, NULL), FATHOM_OK);
    assert_int_equal(v4_bind_attention(m, &c, 0, none, &err), FATHOM_EFORMAT);
    assert_string_equal(err.message, "tensor 'layers.0.attn.wq_a.weight' is missing");
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        double f = (double)m->frequencies[want[i].table][want[i].i];
        if (fabs(f / want[i].f - 1) > 3e-7)
            fail_msg("frequency %zu of table %d is %.9g, expected %.9g", want[i].i, want[i].table, f, want[i].f);
    }
    v4_release(m);
    weights_close(none);
    free(m);
}

/* Binds the tiny model after one of its tensors was left out or replaced by one of another shape or dtype. */
static void bind_changed(bool quantised, const char *name, const struct tensor *instead, enum fathom_status status,
                         const char *message)
{
    struct v4_config c = v4_tiny_config();
    c.is_quantised = quantised;
    struct v4_tensor *tensors;
    struct weights *w;
    struct v4 *m = malloc(sizeof *m);
    struct fathom_err err = {0};
    size_t n, at = 0;
    assert_non_null(m);
    assert_int_equal(v4_tensors(&tensors, &n, &c, NULL), FATHOM_OK);
    while (at < n && strcmp(tensors[at].name, name) != 0)
        at++;
    assert_true(at < n);
    tensors[at] = tensors[--n];
    assert_int_equal(synth_v4_weights(&w, tensors, n, c.n_experts, NULL, NULL), FATHOM_OK);
    if (instead)
        assert_int_equal(weights_add(w, name, instead, NULL), FATHOM_OK);
    assert_int_equal(v4_bind(m, &c, w, &err), status);
    assert_string_equal(err.message, message);
    v4_release(m);
    weights_close(w);
    free(tensors);
    free(m);
}

static void bind_without(const char *name, const struct tensor *instead, enum fathom_status status, const char *message)
{
    bind_changed(false, name, instead, status, message);
}

static struct tensor zeros(enum dtype dtype, size_t rows, size_t cols)
{
    void *data = calloc(1, dtype_bytes(dtype, rows * cols));
    assert_non_null(data);
    return tensor_2d(dtype, data, rows, cols);
}

static void bad_tensors(void **state)
{
    struct tensor t;
    (void)state;
    bind_without("layers.5.ffn.experts.7.w2.weight", NULL, FATHOM_EFORMAT,
                 "tensor 'layers.5.ffn.experts.7.w2.weight' is missing");
    bind_without("layers.1.ffn.gate.tid2eid", NULL, FATHOM_EFORMAT, "tensor 'layers.1.ffn.gate.tid2eid' is missing");
    bind_without("layers.2.ffn.gate.bias", NULL, FATHOM_EFORMAT, "tensor 'layers.2.ffn.gate.bias' is missing");
    t = zeros(DTYPE_I32, 512, 2);
    bind_without("layers.0.ffn.gate.tid2eid", &t, FATHOM_EUNSUPPORTED,
                 "tensor 'layers.0.ffn.gate.tid2eid' has dtype i32, expected I64");
    t = zeros(DTYPE_I64, 512, 3);
    bind_without("layers.0.ffn.gate.tid2eid", &t, FATHOM_EFORMAT,
                 "tensor 'layers.0.ffn.gate.tid2eid' has shape [512, 3], expected [512, 2]");
    t = zeros(DTYPE_BF16, 4, 128);
    bind_without("layers.2.attn.compressor.ape", &t, FATHOM_EUNSUPPORTED,
                 "tensor 'layers.2.attn.compressor.ape' has dtype bf16, expected F32");
    t = zeros(DTYPE_BF16, 128, 128);
    bind_without("layers.3.attn.compressor.wkv.weight", &t, FATHOM_EFORMAT,
                 "tensor 'layers.3.attn.compressor.wkv.weight' has shape [128, 128], expected [64, 128]");
    t = zeros(DTYPE_F32, 23, 512);
    bind_without("layers.4.hc_ffn_fn", &t, FATHOM_EFORMAT,
                 "tensor 'layers.4.hc_ffn_fn' has shape [23, 512], expected [24, 512]");
}

static void bad_scales(void **state)
{
    struct tensor t;
    (void)state;
    bind_changed(true, "layers.1.attn.wq_a.scale", NULL, FATHOM_EFORMAT,
                 "tensor 'layers.1.attn.wq_a.weight' has no scales: 'layers.1.attn.wq_a.scale' is missing");
    bind_changed(
        true, "layers.5.ffn.experts.7.w2.scale", NULL, FATHOM_EFORMAT,
        "tensor 'layers.5.ffn.experts.7.w2.weight' has no scales: 'layers.5.ffn.experts.7.w2.scale' is missing");
    t = zeros(DTYPE_F32, 1, 1);
    bind_changed(true, "layers.0.attn.wkv.scale", &t, FATHOM_EUNSUPPORTED,
                 "tensor 'layers.0.attn.wkv.scale' has dtype f32, expected F8_E8M0");
    t = zeros(DTYPE_F8_E8M0, 64, 3);
    bind_changed(true, "layers.0.ffn.experts.0.w1.scale", &t, FATHOM_EFORMAT,
                 "tensor 'layers.0.ffn.experts.0.w1.scale' of dtype f8_e8m0 has shape [64, 3], expected [64, 4]");
    t = zeros(DTYPE_F8_E8M0, 64, 4);
    ((uint8_t *)t.data)[4 * 9 + 2] = 0xff;
    bind_changed(true, "layers.0.ffn.experts.0.w3.scale", &t, FATHOM_ENUMERIC,
                 "tensor 'layers.0.ffn.experts.0.w3.scale' holds NaN at [9, 2]");
    t = zeros(DTYPE_I8, 64, 128);
    bind_changed(true, "layers.0.ffn.experts.0.w3.weight", &t, FATHOM_EFORMAT,
                 "tensor 'layers.0.ffn.experts.0.w3.weight' of dtype i8 has shape [64, 128], expected [64, 64]");
    t = zeros(DTYPE_F8_E4M3, 64, 127);
    bind_changed(true, "layers.3.attn.wkv.weight", &t, FATHOM_EFORMAT,
                 "tensor 'layers.3.attn.wkv.weight' of dtype f8_e4m3 has shape [64, 127], expected [64, 128]");
    t = zeros(DTYPE_F8_E4M3, 512, 128); /* the embedding is not multiplied by */
    bind_changed(true, "embed.weight", &t, FATHOM_EUNSUPPORTED,
                 "tensor 'embed.weight' has dtype f8_e4m3, expected F32, F16, BF16 or q8_0");
}

/* What synth_v4_write writes is what synth_v4_weights makes, and what weights_open reads. */
static void check_folder(const struct v4_config *c)
{
    struct v4_tensor *tensors;
    struct weights *made, *opened;
    size_t n;
    char *dir = temp_create(), *path = temp_path(dir, "model.safetensors");
    assert_int_equal(v4_tensors(&tensors, &n, c, NULL), FATHOM_OK);
    assert_int_equal(synth_v4_weights(&made, tensors, n, c->n_experts, NULL, NULL), FATHOM_OK);
    assert_int_equal(synth_v4_write(path, tensors, n, c->n_experts, NULL, NULL), FATHOM_OK);
    assert_int_equal(weights_open(&opened, dir, NULL), FATHOM_OK);
    assert_int_equal(weights_count(opened), n);
    for (size_t i = 0; i < n; i++) {
        const struct weight *a = weights_find(made, tensors[i].name), *b = weights_find(opened, tensors[i].name);
        assert_true(a && b);
        assert_int_equal(a->bytes, b->bytes);
        assert_int_equal(a->tensor.dtype, b->tensor.dtype);
        assert_memory_equal(a->tensor.data, b->tensor.data, a->bytes);
    }
    assert_int_equal(weights_copied_bytes(opened), 0);
    weights_close(made), weights_close(opened);
    free(tensors);
    free(path);
    temp_remove(dir);
}

static void folder(void **state)
{
    struct v4_config c = v4_tiny_config();
    (void)state;
    check_folder(&c);
    c.is_quantised = true;
    check_folder(&c);
    c.has_fp8_experts = true;
    check_folder(&c);
}

static void quantised(void **state)
{
    struct v4_config c = v4_tiny_config();
    struct v4 *m = malloc(sizeof *m);
    struct weights *w;
    struct fathom_err err = {0};
    char *dir = temp_create();
    (void)state;
    assert_non_null(m);
    write_safetensors(dir, "model.safetensors",
                      "{\"embed.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,2],\"data_offsets\":[0,4]}}", "1234", 4);
    assert_int_equal(weights_open(&w, dir, &err), FATHOM_OK);
    assert_int_equal(v4_bind(m, &c, w, &err), FATHOM_EUNSUPPORTED);
    assert_string_equal(err.message, "tensor 'embed.weight' has dtype F8_E4M3, expected F32, F16, BF16 or q8_0");
    v4_release(m);
    weights_close(w);
    free(m);
    temp_remove(dir);
    assert_int_equal(parse(&c, "\"quantization_config\": {\"fmt\": \"e4m3\"}", NULL), FATHOM_OK);
    assert_true(c.is_quantised && !c.has_fp8_experts);
    assert_int_equal(parse(&c, "\"quantization_config\": {}, \"expert_dtype\": \"fp8\"", NULL), FATHOM_OK);
    assert_true(c.has_fp8_experts);
    assert_int_equal(parse(&c, "\"quantization_config\": {}, \"moe_intermediate_size\": 40", &err), FATHOM_EFORMAT);
    assert_string_equal(err.message, "experts of 40 x 4096 weights cannot be cut into FP4 blocks of 32");
}

/* Each code is its block's value over the scale, rounded; the largest of a block is near the end of its format. */
static void synth_codes(void **state)
{
    struct v4_config c = v4_tiny_config();
    struct v4_tensor *plain, *native;
    struct weights *a, *b;
    size_t n_plain, n_native, seen = 0;
    (void)state;
    assert_int_equal(v4_tensors(&plain, &n_plain, &c, NULL), FATHOM_OK);
    c.is_quantised = true;
    assert_int_equal(v4_tensors(&native, &n_native, &c, NULL), FATHOM_OK);
    assert_int_equal(synth_v4_weights(&a, plain, n_plain, c.n_experts, NULL, NULL), FATHOM_OK);
    assert_int_equal(synth_v4_weights(&b, native, n_native, c.n_experts, NULL, NULL), FATHOM_OK);
    assert_true(n_native > n_plain);
    for (size_t i = 0; i < n_plain; i++) {
        const struct weight *w = weights_find(a, plain[i].name), *q = weights_find(b, plain[i].name);
        assert_non_null(q);
        if (q->tensor.dtype == w->tensor.dtype) {
            assert_memory_equal(w->tensor.data, q->tensor.data, w->bytes);
            continue;
        }
        struct tensor t;
        size_t rows = w->tensor.shape[0], cols = w->tensor.shape[1];
        assert_int_equal(weights_get_linear(b, &t, rows, cols, NULL, plain[i].name), FATHOM_OK);
        float *row = malloc(cols * sizeof *row);
        for (size_t r = 0; r < rows; r++) {
            weight_row_f32(row, &t, r);
            for (size_t k = 0; k < cols; k++) {
                bool is_f4 = t.dtype == DTYPE_F4_E2M1;
                const uint16_t *from = tensor_row(&w->tensor, r);
                float x = bf16_to_f32(from[k]),
                      scale = e8m0_to_f32(t.scales[(is_f4 ? r : r / 128) * t.scale_stride + k / (is_f4 ? 32 : 128)]);
                float step = is_f4 ? fmaxf(0.25f * scale, fabsf(x) / 4) : fmaxf(0x1p-10f * scale, fabsf(x) / 16);
                assert_true(fabsf(row[k] - x) <= step && fabsf(x) <= (is_f4 ? 6 : 448) * scale);
            }
        }
        seen++;
        free(row);
    }
    assert_int_equal(seen, 6 * 5 + 2 + 6 * 9 * 3); /* attention, indexers, experts */
    weights_close(a), weights_close(b);
    free(plain), free(native);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published),   cmocka_unit_test(tiny),        cmocka_unit_test(refused),
        cmocka_unit_test(frequencies), cmocka_unit_test(bad_tensors), cmocka_unit_test(folder),
        cmocka_unit_test(quantised),   cmocka_unit_test(bad_scales),  cmocka_unit_test(synth_codes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
