/* synth-v1 against the check values published with the golden data. */
#include "weights/synth.h"
#include "base/half.h"
#include "base/pool.h"
#include "weights/ocr_tensors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_check_values(void **state)
{
    static const struct {
        const char *name;
        int n_dims;
        size_t shape[4];
        float values[4];
    } cases[] = {
        {"lm_head.weight", 2, {129280, 1280}, {0.1904296875f, 0.1875f, -0.177734375f, -0.0299072265625f}},
        {"model.layers.3.mlp.experts.7.up_proj.weight",
         2,
         {896, 1280},
         {0.0029296875f, 0.0361328125f, -0.0069580078125f, -0.0419921875f}},
        {"model.norm.weight", 1, {1280}, {0.7734375f, 0.8203125f, 0.94921875f, 1.0703125f}},
        {"model.sam_model.blocks.2.attn.rel_pos_h",
         2,
         {127, 64},
         {0.123046875f, -0.0142822265625f, 0.021484375f, -0.11669921875f}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct synth_range r = synth_rule(cases[i].name, cases[i].n_dims, cases[i].shape);
        uint16_t bf16[4];
        float f32[4];
        synth_fill_bf16(bf16, cases[i].name, 0, 4, r.center, r.amp, NULL);
        synth_fill_f32_rounded(f32, cases[i].name, 0, 4, r.center, r.amp, NULL);
        for (int j = 0; j < 4; j++) {
            assert_true(bf16_to_f32(bf16[j]) == cases[i].values[j]);
            assert_true(f32[j] == cases[i].values[j]);
        }
    }
}

/* The vector loops, in whatever pieces and on whatever threads, give what the definition gives. */
static void test_bulk_equals_definition(void **state)
{
    enum { N = 200003, FIRST = 12345 };
    static float whole[N], pooled[N], part[77];
    const float center = 0.75f, amp = 0.3f;
    struct pool *pool;
    (void)state;
    assert_int_equal(pool_create(3, &pool, NULL), 0);
    synth_fill_f32(whole, "a name", FIRST, N, center, amp, NULL);
    synth_fill_f32(pooled, "a name", FIRST, N, center, amp, pool);
    pool_destroy(pool);
    assert_memory_equal(whole, pooled, sizeof whole);
    for (size_t i = 0; i < N; i += 997) {
        volatile float v = 2 * synth_raw("a name", FIRST + i) - 1;
        volatile float product = amp * v;
        volatile float sum = center + product;
        assert_true(whole[i] == sum);
    }
    synth_fill_f32(part, "a name", FIRST + 100, 77, center, amp, NULL);
    assert_memory_equal(part, whole + 100, sizeof part);
}

static void test_raw_is_a_24_bit_fraction(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        float u = synth_raw("image.64x48", i);
        assert_true(u >= 0 && u < 1 && u * 0x1p24f == (float)(int)(u * 0x1p24f));
    }
}

static void test_rules(void **state)
{
    static const size_t matrix[4] = {64, 1280}, conv[4] = {256, 256, 3, 3}, vector[4] = {1280};
    (void)state;
    struct synth_range r = synth_rule("model.layers.1.mlp.gate.weight", 2, matrix);
    assert_true(r.center == 0 && r.amp == (float)(2 * 0.04841229182759271));
    r = synth_rule("model.layers.0.mlp.gate_proj.weight", 2, matrix);
    assert_true(r.amp == (float)0.04841229182759271);
    r = synth_rule("model.sam_model.neck.2.weight", 4, conv);
    assert_true(r.amp == (float)0.036084391824351615); /* sqrt(3 / 2304) */
    assert_true(synth_rule("model.sam_model.neck.1.weight", 1, vector).center == 1);
    assert_true(synth_rule("model.vision_model.pre_layrnorm.weight", 1, vector).center == 1);
    assert_true(synth_rule("model.vision_model.pre_layrnorm.bias", 1, vector).amp == 0.125f);
    assert_true(synth_rule("model.sam_model.pos_embed", 4, conv).amp == 0.5f);
    assert_true(synth_rule("model.view_seperator", 1, vector).amp == 1);
    assert_true(synth_rule("model.qwen2_model.query_768.weight", 2, matrix).amp == 1);
}

/* Counts that the published checkpoint has (spec deepseek-ocr §1.1). */
static void test_published_tensor_list(void **state)
{
    struct model_config c = config_ocr2_published();
    struct tensor_spec *specs;
    size_t n, parameters = 0;
    (void)state;
    assert_int_equal(ocr_tensors(&specs, &n, &c, NULL), 0);
    for (size_t i = 0; i < n; i++)
        parameters += tensor_spec_elements(&specs[i]);
    assert_int_equal(n, 2707);
    assert_int_equal(parameters, 3389119360);
    free(specs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check_values),
        cmocka_unit_test(test_bulk_equals_definition),
        cmocka_unit_test(test_raw_is_a_24_bit_fraction),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_published_tensor_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
