/* Folders of weights: single and sharded, both name layouts, and what is wrong with them. */
#include "weights/weights.h"
#include "support.h"
#include "weights/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define T(name, dtype, shape, begin, end)                                                                              \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

static int setup(void **state)
{
    *state = temp_create();
    return 0;
}

static int teardown(void **state)
{
    temp_remove(*state);
    return 0;
}

/* message is a format for dir. */
static void expect_failure(const char *dir, enum fathom_status status, const char *message)
{
    char expected[1024];
    struct weights *w;
    struct fathom_err err = {0};
    enum fathom_status got = weights_open(&w, dir, &err);
    snprintf(expected, sizeof expected, message, dir, dir, dir);
    assert_string_equal(err.message, expected);
    assert_int_equal(got, status);
    assert_null(w);
}

static struct weights *expect_open(const char *dir)
{
    struct weights *w;
    struct fathom_err err;
    if (weights_open(&w, dir, &err))
        fail_msg("%s", err.message);
    return w;
}

static float value_at(const struct weights *w, const char *name, size_t i)
{
    const struct weight *weight = weights_find(w, name);
    assert_non_null(weight);
    assert_int_equal(weight->tensor.dtype, DTYPE_F32);
    return ((const float *)weight->tensor.data)[i];
}

static void test_single_file(void **state)
{
    static const float data[] = {1, 2, 3};
    static const char header[] = "{" T("b", "F32", "[2]", "0", "8") "," T("a", "F32", "[1]", "8", "12") "}";
    write_safetensors(*state, "any.safetensors", header, data, sizeof data);
    write_text(*state, "not.safetensors.txt", "");
    struct weights *w = expect_open(*state);
    assert_int_equal(weights_count(w), 2);
    assert_string_equal(weights_at(w, 0)->name, "a");
    assert_string_equal(weights_at(w, 1)->name, "b");
    assert_null(weights_at(w, 2));
    assert_null(weights_find(w, "c"));
    assert_int_equal(weights_mapped_bytes(w), 8 + strlen(header) + sizeof data);
    assert_true(value_at(w, "b", 1) == 2);
    weights_close(w);
    weights_close(NULL);

    write_safetensors(*state, "other.safetensors", header, data, sizeof data);
    expect_failure(*state, FATHOM_EFORMAT, "'%s' has more than one *.safetensors and none called model.safetensors");
    write_safetensors(*state, "model.safetensors", "{" T("m", "F32", "[3]", "0", "12") "}", data, sizeof data);
    w = expect_open(*state);
    assert_true(value_at(w, "m", 2) == 3);
    weights_close(w);
}

static void test_no_folder_or_nothing_in_it(void **state)
{
    char *none = temp_path(*state, "none");
    expect_failure(*state, FATHOM_EIO, "'%s' has no *.safetensors file");
    expect_failure(none, FATHOM_EIO, "cannot open '%s': No such file or directory");
    write_text(*state, "none", "a file");
    expect_failure(none, FATHOM_EIO, "cannot open '%s': Not a directory");
    free(none);
    write_text(*state, "model.safetensors", "");
    expect_failure(*state, FATHOM_EFORMAT, "'%s/model.safetensors': 0 bytes are too few for a safetensors file");
}

static void test_shards(void **state)
{
    static const float one[] = {1}, two[] = {2};
    write_safetensors(*state, "model-00001-of-00002.safetensors", "{" T("a", "F32", "[1]", "0", "4") "}", one, 4);
    write_safetensors(*state, "model-00002-of-00002.safetensors", "{" T("b", "F32", "[1]", "0", "4") "}", two, 4);
    expect_failure(*state, FATHOM_EFORMAT, "'%s' has more than one *.safetensors and none called model.safetensors");
    write_text(*state, "model.safetensors.index.json", /* total_size is known to be wrong in the wild */
               "{\"metadata\":{\"total_size\":999},\"weight_map\":{\"b\":\"model-00002-of-00002.safetensors\","
               "\"a\":\"model-00001-of-00002.safetensors\"}}");
    struct weights *w = expect_open(*state);
    assert_int_equal(weights_count(w), 2);
    assert_true(value_at(w, "a", 0) == 1 && value_at(w, "b", 0) == 2);
    weights_close(w);

    write_safetensors(*state, "model-00002-of-00002.safetensors", "{" T("a", "F32", "[1]", "0", "4") "}", two, 4);
    expect_failure(*state, FATHOM_EFORMAT,
                   "'%s/model-00002-of-00002.safetensors': tensor 'b' is missing, though the index places it there");
    write_safetensors(*state, "model-00002-of-00002.safetensors",
                      "{" T("b", "F32", "[1]", "0", "4") "," T("a", "F32", "[0]", "4", "4") "}", two, 4);
    expect_failure(*state, FATHOM_EFORMAT, "'%s': tensor 'a' is in two files");
}

static void test_bad_index(void **state)
{
    static const struct {
        const char *index, *message;
        enum fathom_status status;
    } cases[] = {
        {"{\"weight_map\":{\"a\":\"absent.safetensors\"}}",
         "cannot open '%s/absent.safetensors': No such file or directory", FATHOM_EIO},
        {"{\"weight_map\":{\"a\":\"../x.safetensors\"}}",
         "'%s/model.safetensors.index.json': tensor 'a' is placed in '../x.safetensors', which is not a plain file "
         "name",
         FATHOM_EFORMAT},
        {"{\"weight_map\":{\"a\":\"/etc/passwd\"}}",
         "'%s/model.safetensors.index.json': tensor 'a' is placed in '/etc/passwd', which is not a plain file name",
         FATHOM_EFORMAT},
        {"{\"weight_map\":{\"a\":\"..\"}}",
         "'%s/model.safetensors.index.json': tensor 'a' is placed in '..', which is not a plain file name",
         FATHOM_EFORMAT},
        {"{\"weight_map\":{\"a\":\"\"}}",
         "'%s/model.safetensors.index.json': tensor 'a' is placed in a file with an empty name", FATHOM_EFORMAT},
        {"{\"weight_map\":{\"a\":\"b\\u0000c\"}}",
         "'%s/model.safetensors.index.json': tensor 'a' is placed in a file with a zero byte in its name, after 'b'",
         FATHOM_EFORMAT},
        {"{\"weight_map\":{\"a\":7}}",
         "'%s/model.safetensors.index.json': tensor 'a' is not placed in a file: its entry is no string",
         FATHOM_EFORMAT},
        {"{\"weight_map\":{}}", "'%s/model.safetensors.index.json': weight_map is empty", FATHOM_EFORMAT},
        {"{\"weight_map\":[]}", "'%s/model.safetensors.index.json': no weight_map", FATHOM_EFORMAT},
        {"[]", "'%s/model.safetensors.index.json': no weight_map", FATHOM_EFORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text(*state, "model.safetensors.index.json", cases[i].index);
        expect_failure(*state, cases[i].status, cases[i].message);
    }
}

/* Every rule of spec deepseek-ocr §1.4, and names that no rule may touch. */
static void test_native_names(void **state)
{
    static const char *const names[][2] = {
        {"model.language_model.embed_tokens.weight", "model.embed_tokens.weight"},
        {"model.language_model.layers.11.self_attn.q_proj.weight", "model.layers.11.self_attn.q_proj.weight"},
        {"model.language_model.norm.weight", "model.norm.weight"},
        {"lm_head.weight", "lm_head.weight"},
        {"model.multi_modal_projector.weight", "model.projector.layers.weight"},
        {"model.multi_modal_projector.bias", "model.projector.layers.bias"},
        {"model.view_separator", "model.view_seperator"},
        {"model.vision_tower.sam_encoder.patch_embed.projection.bias", "model.sam_model.patch_embed.proj.bias"},
        {"model.vision_tower.sam_encoder.pos_embed", "model.sam_model.pos_embed"},
        {"model.vision_tower.sam_encoder.layers.10.layer_norm1.weight", "model.sam_model.blocks.10.norm1.weight"},
        {"model.vision_tower.sam_encoder.layers.0.layer_norm2.bias", "model.sam_model.blocks.0.norm2.bias"},
        {"model.vision_tower.sam_encoder.layers.3.attn.rel_pos_h", "model.sam_model.blocks.3.attn.rel_pos_h"},
        {"model.vision_tower.sam_encoder.layers.3.mlp.lin1.weight", "model.sam_model.blocks.3.mlp.lin1.weight"},
        {"model.vision_tower.sam_encoder.neck.conv1.weight", "model.sam_model.neck.0.weight"},
        {"model.vision_tower.sam_encoder.neck.layer_norm1.bias", "model.sam_model.neck.1.bias"},
        {"model.vision_tower.sam_encoder.neck.conv2.weight", "model.sam_model.neck.2.weight"},
        {"model.vision_tower.sam_encoder.neck.layer_norm2.weight", "model.sam_model.neck.3.weight"},
        {"model.vision_tower.sam_encoder.proj.conv1.weight", "model.sam_model.net_2.weight"},
        {"model.vision_tower.sam_encoder.proj.conv2.weight", "model.sam_model.net_3.weight"},
        {"model.vision_tower.vision_encoder.layers.23.mlp.up_proj.weight",
         "model.qwen2_model.model.model.layers.23.mlp.up_proj.weight"},
        {"model.vision_tower.vision_encoder.norm.weight", "model.qwen2_model.model.model.norm.weight"},
        {"model.vision_tower.query_768_resolution.weight", "model.qwen2_model.query_768.weight"},
        {"model.vision_tower.query_1024_resolution.weight", "model.qwen2_model.query_1024.weight"},
        {"model.layers.0.mlp.gate.weight", "model.layers.0.mlp.gate.weight"},
        {"model.vision_tower.sam_encoder.layers.x.attn.qkv.weight",
         "model.vision_tower.sam_encoder.layers.x.attn.qkv.weight"},
        {"model.view_separator.weight", "model.view_separator.weight"},
        {"xmodel.view_separator", "xmodel.view_separator"},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *name = published_name(names[i][0]);
        assert_string_equal(name, names[i][1]);
        free(name);
    }
}

/* A fused layer of 2 experts, 2 gate and 2 up rows of 3, and its down matrices, under native and published names. */
static void test_fused_experts(void **state)
{
    static const char *const headers[] = {
        "{" T("model.language_model.layers.1.mlp.experts.gate_up_proj", "F32", "[2,4,3]", "0",
              "96") "," T("model.language_model.layers.1.mlp.experts.down_proj", "F32", "[2,3,2]", "96", "144") "}",
        "{" T("model.layers.1.mlp.experts.gate_up_proj", "F32", "[2,4,3]", "0",
              "96") "," T("model.layers.1.mlp.experts.down_proj", "F32", "[2,3,2]", "96", "144") "}",
    };
    float data[36];
    struct tensor t;
    for (int i = 0; i < 36; i++)
        data[i] = (float)i;
    for (size_t h = 0; h < 2; h++) {
        write_safetensors(*state, "model.safetensors", headers[h], data, sizeof data);
        struct weights *w = expect_open(*state);
        assert_int_equal(weights_count(w), 6);
        for (size_t e = 0; e < 2; e++) {
            assert_int_equal(
                weights_get(w, &t, 2, (size_t[]){2, 3}, NULL, "model.layers.1.mlp.experts.%zu.gate_proj.weight", e), 0);
            assert_true(((float *)t.data)[0] == (float)(12 * e) && t.stride[0] == 3);
            assert_int_equal(
                weights_get(w, &t, 2, (size_t[]){2, 3}, NULL, "model.layers.1.mlp.experts.%zu.up_proj.weight", e), 0);
            assert_true(((float *)t.data)[5] == (float)(12 * e + 11));
            assert_int_equal(
                weights_get(w, &t, 2, (size_t[]){3, 2}, NULL, "model.layers.1.mlp.experts.%zu.down_proj.weight", e), 0);
            assert_true(((float *)t.data)[0] == (float)(24 + 6 * e));
        }
        weights_close(w);
    }
    write_safetensors(*state, "model.safetensors",
                      "{" T("model.language_model.layers.0.mlp.experts.gate_up_proj", "F32", "[2,3,6]", "0", "144") "}",
                      data, 144);
    expect_failure(
        *state, FATHOM_EFORMAT,
        "'%s/model.safetensors': tensor 'model.language_model.layers.0.mlp.experts.gate_up_proj' has 3 rows an "
        "expert, expected gate and up rows in equal number");
    write_safetensors(*state, "model.safetensors",
                      "{" T("model.layers.0.mlp.experts.down_proj", "F32", "[1000000000000,0,6]", "0", "0") "}", data,
                      0);
    expect_failure(
        *state, FATHOM_ELIMIT,
        "'%s/model.safetensors': tensor 'model.layers.0.mlp.experts.down_proj' has 1000000000000 experts, more "
        "than the limit of 4096");
}

static void test_one_tensor_under_two_names(void **state)
{
    static const float data[] = {1, 2};
    write_safetensors(*state, "model.safetensors",
                      "{" T("model.norm.weight", "F32", "[1]", "0", "4") "," T("model.language_model.norm.weight",
                                                                               "F32", "[1]", "4", "8") "}",
                      data, 8);
    struct weights *w;
    struct fathom_err err;
    assert_int_equal(weights_open(&w, *state, &err), FATHOM_EFORMAT);
    assert_non_null(strstr(err.message, "are both 'model.norm.weight'"));
}

/* Behind a header of odd length nothing is aligned: what needs it is copied, bytes are not. */
static void test_odd_alignment(void **state)
{
    static const float data[] = {1.5f, -2};
    static const char header[] =
        "{" T("f", "F32", "[2]", "0", "8") "," T("u", "U8", "[1]", "8", "9") "," T("h", "BF16", "[1]", "9", "11") "}";
    char padded[sizeof header + 8];
    uint8_t bytes[11] = {0};
    size_t copied = 0;
    memcpy(bytes, data, 8);
    bytes[9] = 0x80, bytes[10] = 0x3f; /* 1 in bf16 */
    for (int pad = 0; pad < 8; pad++) {
        snprintf(padded, sizeof padded, "%s%*s", header, pad, "");
        write_safetensors(*state, "model.safetensors", padded, bytes, sizeof bytes);
        struct weights *w = expect_open(*state);
        assert_true(value_at(w, "f", 0) == 1.5f && value_at(w, "f", 1) == -2);
        const struct tensor *t = &weights_find(w, "h")->tensor;
        assert_int_equal((uintptr_t)t->data % 2, 0);
        assert_int_equal(*(const uint16_t *)t->data, 0x3f80);
        bool is_even = strlen(padded) % 2 == 0, is_aligned = strlen(padded) % 4 == 0;
        assert_int_equal(weights_copied_bytes(w), (is_aligned ? 0u : 8u) + (is_even ? 2u : 0u));
        copied += weights_copied_bytes(w);
        weights_close(w);
    }
    assert_int_equal(copied, 6 * 8 + 4 * 2);
}

static void expect_get(const struct weights *w, const char *name, int n_dims, const size_t *shape,
                       enum fathom_status status, const char *message)
{
    struct tensor t;
    struct fathom_err err = {0};
    assert_int_equal(weights_get(w, &t, n_dims, shape, &err, "%s", name), status);
    assert_string_equal(err.message, message ? message : "");
}

static void test_get(void **state)
{
    static const char header[] =
        "{\"__metadata__\":{\"q\":\"q8_0 [1, 288]\"}," T("model.view_separator", "BF16", "[2]", "0", "4") "," T(
            "m", "F16", "[1,2]", "4",
            "8") "," T("v", "F16", "[2]", "8",
                       "12") "," T("n", "I32", "[1,1]", "12",
                                   "16") "," T("c", "BF16", "[2,1,1,1]", "16",
                                               "20") "," T("f", "F8_E4M3", "[1,4]", "20",
                                                           "24") "," T("q", "U8", "[1,306]", "24",
                                                                       "330") "," T("model.vision_model.embeddings."
                                                                                    "position_ids",
                                                                                    "I64", "[1,0]", "330", "330") "}";
    static const uint8_t data[330];
    const size_t any = WEIGHT_ANY;
    write_safetensors(*state, "model.safetensors", header, data, sizeof data);
    struct weights *w = expect_open(*state);
    expect_get(w, "model.view_seperator", 1, (size_t[]){2}, 0, NULL);
    expect_get(w, "model.view_seperator", 1, (size_t[]){3}, FATHOM_EFORMAT,
               "tensor 'model.view_separator' has shape [2], expected [3]");
    expect_get(w, "model.view_seperator", 2, (size_t[]){2, any}, FATHOM_EFORMAT,
               "tensor 'model.view_separator' has shape [2], expected [2, any]");
    expect_get(w, "m", 2, (size_t[]){any, 2}, 0, NULL);
    expect_get(w, "m", 2, (size_t[]){2, 1}, FATHOM_EFORMAT, "tensor 'm' has shape [1, 2], expected [2, 1]");
    expect_get(w, "v", 1, (size_t[]){2}, FATHOM_EUNSUPPORTED, "tensor 'v' has dtype F16, expected F32 or BF16");
    expect_get(w, "n", 2, (size_t[]){1, 1}, FATHOM_EUNSUPPORTED,
               "tensor 'n' has dtype I32, expected F32, F16, BF16 or q8_0");
    expect_get(w, "f", 2, (size_t[]){1, 4}, FATHOM_EUNSUPPORTED,
               "tensor 'f' has dtype F8_E4M3, expected F32, F16, BF16 or q8_0");
    expect_get(w, "x.y", 1, (size_t[]){1}, FATHOM_EFORMAT, "tensor 'x.y' is missing");
    expect_get(w, "c", 4, (size_t[]){2, 1, 1, 1}, 0, NULL);
    expect_get(w, "q", 4, (size_t[]){1, 32, 3, 3}, 0, NULL);
    expect_get(w, "q", 4, (size_t[]){1, 32, 3, any}, FATHOM_EFORMAT,
               "tensor 'q' has shape [1, 288], expected [1, 32, 3, any]");
    expect_get(w, "q", 4, (size_t[]){1, 32, 3, 2}, FATHOM_EFORMAT,
               "tensor 'q' has shape [1, 288], expected [1, 32, 3, 2]");
    weights_close(w);
}

/* One bad number among many, in each dtype; whole numbers may have any bits. */
static void test_finds_what_is_not_finite(void **state)
{
    enum { N = 10000 };
    static uint8_t data[N * 4];
    static const struct {
        const char *dtype, *metadata;
        size_t n, at, size;
        uint8_t bytes[4];
        bool is_bad;
    } cases[] = {
        {"F32", "", N, 0, 4, {0, 0, 0x80, 0x7f}, true},
        {"F32", "", N, N - 1, 4, {1, 0, 0x80, 0xff}, true},
        {"F32", "", N, 4999, 4, {0xff, 0xff, 0x7f, 0x7f}, false},
        {"F16", "", N, 4096, 2, {0, 0x7c}, true},
        {"F16", "", N, 4096, 2, {0xff, 0x7b}, false},
        {"BF16", "", N, 9999, 2, {0xc0, 0xff}, true},
        {"BF16", "", N, 9999, 2, {0x7f, 0x7f}, false},
        {"I32", "", N, 17, 4, {0, 0, 0x80, 0x7f}, false},
        {"U8", "\"x\":\"q8_0 [10, 640]\"", 6800, 34 * 199, 1, {0, 0, 0, 0}, false},
        {"U8", "\"x\":\"q8_0 [10, 640]\"", 6800, 34 * 199 + 1, 1, {0xfc}, true},
        {"U8", "\"x\":\"q8_0 [10, 640]\"", 6800, 34 * 199 + 2, 1, {0x7c}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char header[256];
        const char *name = NULL;
        size_t bytes = cases[i].n * (strcmp(cases[i].dtype, "U8") ? cases[i].size : 1);
        memset(data, 0, sizeof data);
        memcpy(data + cases[i].at * cases[i].size, cases[i].bytes, cases[i].size);
        snprintf(header, sizeof header,
                 "{\"__metadata__\":{%s},\"x\":{\"dtype\":\"%s\",\"shape\":[10,%zu],\"data_offsets\":[0,%zu]}}",
                 cases[i].metadata, cases[i].dtype, cases[i].n / 10, bytes);
        write_safetensors(*state, "model.safetensors", header, data, bytes);
        struct weights *w = expect_open(*state);
        assert_int_equal(weights_find_nonfinite(w, &name), cases[i].is_bad);
        if (cases[i].is_bad)
            assert_string_equal(name, "x");
        weights_close(w);
    }
}

static void test_made_in_memory(void **state)
{
    struct weights *w;
    struct fathom_err err;
    char name[16];
    (void)state;
    assert_int_equal(weights_create(&w, NULL), 0);
    for (int i = 0; i < 300; i++) { /* in no order */
        float *data = malloc(sizeof *data);
        *data = (float)(i * 7 % 300);
        struct tensor t = tensor_1d(DTYPE_F32, data, 1);
        snprintf(name, sizeof name, "t%03d", i * 7 % 300);
        assert_int_equal(weights_add(w, name, &t, NULL), 0);
    }
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "t%03d", i);
        assert_true(value_at(w, name, 0) == (float)i);
    }
    struct tensor placeholder = tensor_1d(DTYPE_F32, NULL, 0), twice = tensor_1d(DTYPE_F32, malloc(4), 1);
    assert_int_equal(weights_add(w, "empty", &placeholder, NULL), 0);
    assert_int_equal(weights_add(w, "t007", &twice, &err), FATHOM_EINVAL);
    assert_string_equal(err.message, "tensor 't007' is there already");
    assert_int_equal(weights_count(w), 301);
    weights_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_single_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_folder_or_nothing_in_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shards, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_index, setup, teardown),
        cmocka_unit_test(test_native_names),
        cmocka_unit_test_setup_teardown(test_fused_experts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_tensor_under_two_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_odd_alignment, setup, teardown),
        cmocka_unit_test_setup_teardown(test_get, setup, teardown),
        cmocka_unit_test_setup_teardown(test_finds_what_is_not_finite, setup, teardown),
        cmocka_unit_test(test_made_in_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
