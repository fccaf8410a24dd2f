/* config.json and the image processor's file, both dialects, against tensors that agree and that do not. */
#include "support.h"
#include "tiny_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* tiny_config() as transformers writes it, and as the published file would say it: with the fields that lie. */
static const char native[] =
    "{\"architectures\":[\"DeepseekOcr2ForConditionalGeneration\"],\"model_type\":\"deepseek_ocr2\","
    "\"image_token_id\":2042,"
    "\"text_config\":{\"hidden_size\":64,\"num_hidden_layers\":3,\"num_attention_heads\":4,\"num_key_value_heads\":4,"
    "\"head_dim\":16,\"intermediate_size\":96,\"moe_intermediate_size\":32,\"n_routed_experts\":8,"
    "\"num_experts_per_tok\":3,\"n_shared_experts\":2,\"mlp_layer_types\":[\"dense\",\"sparse\",\"sparse\"],"
    "\"vocab_size\":2048,\"max_position_embeddings\":2048,\"rms_norm_eps\":1e-06,\"bos_token_id\":0,\"eos_token_id\":1,"
    "\"rope_parameters\":{\"rope_theta\":10000.0,\"rope_type\":\"default\"},\"hidden_act\":\"silu\"},"
    "\"vision_config\":{"
    "\"sam_config\":{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,\"mlp_dim\":48,"
    "\"output_channels\":16,\"downsample_channels\":[24,32],\"global_attn_indexes\":[1],\"image_size\":1024,"
    "\"patch_size\":16,\"window_size\":14,\"layer_norm_eps\":1e-06,\"mlp_ratio\":1.5},"
    "\"encoder_config\":{\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
    "\"num_key_value_heads\":1,\"intermediate_size\":64,\"rms_norm_eps\":1e-06,"
    "\"rope_parameters\":{\"rope_theta\":1000000.0,\"rope_type\":\"default\"}}}}";

static const char published[] =
    "{\"architectures\":[\"DeepseekOCR2ForCausalLM\"],\"model_type\":\"deepseek_vl_v2\",\"hidden_size\":64,"
    "\"num_attention_heads\":4,\"num_key_value_heads\":4,\"max_position_embeddings\":2048,"
    "\"language_config\":{\"hidden_size\":64,\"num_hidden_layers\":3,\"num_attention_heads\":4,"
    "\"intermediate_size\":96,\"moe_intermediate_size\":32,\"n_routed_experts\":8,\"num_experts_per_tok\":3,"
    "\"n_shared_experts\":2,\"first_k_dense_replace\":1,\"vocab_size\":2048,\"use_mla\":false,\"kv_lora_rank\":null,"
    "\"qk_nope_head_dim\":0,\"v_head_dim\":0,\"topk_method\":\"greedy\",\"bos_token_id\":0,\"eos_token_id\":[1,7]},"
    "\"projector_config\":{\"input_dim\":32,\"n_embed\":64},"
    "\"vision_config\":{\"image_size\":1024,\"mlp_ratio\":3.7362,\"width\":{"
    "\"sam_vit_b\":{\"width\":32,\"layers\":2,\"heads\":2,\"downsample_channels\":[24,1024]},"
    "\"qwen2-0-5b\":{\"dim\":32}}}}";

/* A folder with synthetic weights of c's sizes, made once. */
static char *dir;
static struct weights *weights;

static int make_folder(void **state)
{
    struct model_config c = tiny_config();
    struct tensor_spec *specs;
    size_t n;
    (void)state;
    dir = temp_create();
    char *path = temp_path(dir, "model.safetensors");
    int failed = ocr_tensors(&specs, &n, &c, NULL) || synth_write(path, specs, n, NULL, NULL) ||
                 weights_open(&weights, dir, NULL);
    free(specs);
    free(path);
    return failed;
}

static int remove_folder(void **state)
{
    (void)state;
    weights_close(weights);
    temp_remove(dir);
    return 0;
}

static int forget_json(void **state)
{
    static const char *const names[] = {"config.json", "preprocessor_config.json", "processor_config.json"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char *path = temp_path(dir, names[i]);
        remove(path);
        free(path);
    }
    return 0;
}

static struct model_config expect_load(const struct weights *w)
{
    struct model_config c;
    struct fathom_err err;
    if (config_load(&c, dir, w, &err))
        fail_msg("%s", err.message);
    return c;
}

static void expect_equal(const struct model_config *a, const struct model_config *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_memory_equal(&a->sam, &b->sam, sizeof a->sam);
    assert_memory_equal(&a->encoder, &b->encoder, sizeof a->encoder);
    assert_memory_equal(&a->decoder, &b->decoder, sizeof a->decoder);
    assert_memory_equal(&a->view, &b->view, sizeof a->view);
    assert_int_equal(a->image_id, b->image_id);
}

/* text with the first `from` replaced; the caller frees it. */
static char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    assert_non_null(at);
    size_t size = strlen(text) + strlen(to) + 1;
    char *out = malloc(size);
    assert_non_null(out);
    snprintf(out, size, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return out;
}

static void test_native(void **state)
{
    struct model_config c, expected = tiny_config();
    (void)state;
    write_text(dir, "config.json", native);
    c = expect_load(weights);
    expect_equal(&c, &expected);
}

/* The encoder's heads are in no published file: 64 each, here one. */
static void test_published(void **state)
{
    struct model_config expected = tiny_config(), c = expected;
    struct weights *w;
    (void)state;
    c.encoder.n_heads = 2;
    c.encoder.head_dim = 64;
    assert_int_equal(synth_ocr_weights(&w, &c, NULL, NULL), 0);
    write_text(dir, "config.json", published);
    expected.encoder.n_heads = 2;
    expected.encoder.n_kv_heads = 1;
    expected.encoder.head_dim = 64;
    expected.image_id = 128815;
    c = expect_load(w);
    expect_equal(&c, &expected);
    weights_close(w);
}

/* Sizes that the tensors show are the tensors', whatever the file says. */
static void test_tensors_win(void **state)
{
    static const char *const lies[][2] = {
        {"\"hidden_size\":64", "\"hidden_size\":1280"},
        {"\"num_hidden_layers\":3", "\"num_hidden_layers\":12"},
        {"\"vocab_size\":2048", "\"vocab_size\":129280"},
        {"\"n_routed_experts\":8", "\"n_routed_experts\":64"},
        {"\"moe_intermediate_size\":32", "\"moe_intermediate_size\":896"},
        {"\"n_shared_experts\":2", "\"n_shared_experts\":0"},
        {"[\"dense\",\"sparse\",\"sparse\"]", "[\"dense\",\"dense\"]"},
        {"\"downsample_channels\":[24,32]", "\"downsample_channels\":[512,1024]"},
        {"\"global_attn_indexes\":[1]", "\"global_attn_indexes\":[0,5]"},
        {"\"num_attention_heads\":2,\"mlp_dim\":48", "\"num_attention_heads\":12,\"mlp_dim\":3072"},
        {"\"window_size\":14", "\"window_size\":7"},
    };
    struct model_config expected = tiny_config();
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        char *text = replaced(native, lies[i][0], lies[i][1]);
        write_text(dir, "config.json", text);
        struct model_config c = expect_load(weights);
        expect_equal(&c, &expected);
        free(text);
    }
}

static void test_read_without_weights(void **state)
{
    struct model_config c, expected = tiny_config();
    char *path = temp_path(dir, "config.json");
    (void)state;
    write_text(dir, "config.json", native);
    assert_int_equal(config_read(&c, path, NULL), 0);
    expect_equal(&c, &expected);

    write_text(dir, "config.json", "{\"architectures\":[\"DeepseekOCR2ForCausalLM\"]}");
    expected = config_ocr2_published();
    assert_int_equal(config_read(&c, path, NULL), 0);
    expect_equal(&c, &expected);

    write_text(dir, "config.json",
               "{\"architectures\":[\"DeepseekOCRForCausalLM\"],\"model_type\":\"deepseek_vl_v2\",\"vision_config\":{"
               "\"width\":{\"sam_vit_b\":{\"downsample_channels\":[512,1024]},\"clip-l-14-224\":{\"width\":1024,"
               "\"layers\":24,\"heads\":16,\"image_size\":224,\"patch_size\":14}}}}");
    expected = config_ocr1_published();
    assert_int_equal(config_read(&c, path, NULL), 0);
    expect_equal(&c, &expected);
    assert_memory_equal(&c.clip, &expected.clip, sizeof c.clip);
    free(path);
}

struct bad_value {
    const char *from, *to, *message; /* message: behind the quoted path */
    enum fathom_status status;
};

static const struct bad_value bad_values[] = {
    {"\"num_attention_heads\":4", "\"num_attention_heads\":0",
     "text_config.num_attention_heads is 0, expected a whole number from 1 to 1024", FATHOM_EFORMAT},
    {"\"hidden_size\":64", "\"hidden_size\":-64",
     "text_config.hidden_size is -64, expected a whole number from 1 to 65536", FATHOM_EFORMAT},
    {"\"hidden_size\":64", "\"hidden_size\":99999999999999999999",
     "text_config.hidden_size is 99999999999999999999, expected a whole number from 1 to 65536", FATHOM_EFORMAT},
    {"\"hidden_size\":64", "\"hidden_size\":\"64\"",
     "text_config.hidden_size is '64', expected a whole number from 1 to 65536", FATHOM_EFORMAT},
    {"\"hidden_size\":64", "\"hidden_size\":[]",
     "text_config.hidden_size is a list, expected a whole number from 1 to 65536", FATHOM_EFORMAT},
    {"\"num_hidden_layers\":3", "\"num_hidden_layers\":129",
     "text_config.num_hidden_layers is 129, expected a whole number from 1 to 128", FATHOM_EFORMAT},
    {"\"num_hidden_layers\":2", "\"num_hidden_layers\":1.5",
     "sam_config.num_hidden_layers is 1.5, expected a whole number from 1 to 128", FATHOM_EFORMAT},
    {"\"rms_norm_eps\":1e-06", "\"rms_norm_eps\":1e999",
     "text_config.rms_norm_eps is 1e999, expected a number from 1e-12 to 0.1", FATHOM_EFORMAT},
    {"\"rms_norm_eps\":1e-06", "\"rms_norm_eps\":0",
     "text_config.rms_norm_eps is 0, expected a number from 1e-12 to 0.1", FATHOM_EFORMAT},
    {"\"rope_theta\":10000.0", "\"rope_theta\":-1",
     "rope_parameters.rope_theta is -1, expected a number from 1 to 1e+12", FATHOM_EFORMAT},
    {"\"rope_type\":\"default\"", "\"rope_type\":\"yarn\"", "rope_parameters.rope_type is 'yarn', expected 'default'",
     FATHOM_EUNSUPPORTED},
    {"\"hidden_act\":\"silu\"", "\"hidden_act\":\"gelu\"", "text_config.hidden_act is 'gelu', expected 'silu'",
     FATHOM_EUNSUPPORTED},
    {"\"hidden_act\":\"silu\"", "\"tie_word_embeddings\":true",
     "text_config.tie_word_embeddings is true, expected false", FATHOM_EUNSUPPORTED},
    {"[\"dense\",\"sparse\",\"sparse\"]", "[\"sparse\",\"dense\"]",
     "text_config.mlp_layer_types is 'dense', expected 'dense' layers and then 'sparse' ones", FATHOM_EUNSUPPORTED},
    {"\"downsample_channels\":[24,32]", "\"downsample_channels\":[24,-32]",
     "sam_config.downsample_channels is -32, expected a whole number from 1 to 65536", FATHOM_EFORMAT},
    {"\"global_attn_indexes\":[1]", "\"global_attn_indexes\":[128]",
     "sam_config.global_attn_indexes is 128, expected a whole number from 0 to 127", FATHOM_EFORMAT},
    {"\"sam_config\":{", "\"sam_config\":7,\"x\":{", "sam_config is 7, expected an object", FATHOM_EFORMAT},
    {"\"text_config\":{", "\"text_config\":\"x\",\"x\":{", "text_config is 'x', expected an object", FATHOM_EFORMAT},
    {"\"image_token_id\":2042", "\"image_token_id\":4294967296",
     "image_token_id is 4294967296, expected a whole number from 0 to 2147483647", FATHOM_EFORMAT},
    {"\"DeepseekOcr2ForConditionalGeneration\"", "\"DeepseekV4ForCausalLM\"",
     "architecture 'DeepseekV4ForCausalLM' is not supported", FATHOM_EUNSUPPORTED},
    {"{\"arch", "[{\"arch", NULL, FATHOM_EFORMAT},
};

static void test_bad_values(void **state)
{
    char *path = temp_path(dir, "config.json"), expected[1024];
    struct model_config c;
    (void)state;
    for (size_t i = 0; i < sizeof bad_values / sizeof *bad_values; i++) {
        const struct bad_value *bad = &bad_values[i];
        struct fathom_err err = {0};
        char *text = replaced(native, bad->from, bad->to);
        write_text(dir, "config.json", text);
        enum fathom_status status = config_load(&c, dir, weights, &err);
        snprintf(expected, sizeof expected, "'%s': %s", path, bad->message ? bad->message : "");
        if (status != bad->status || (bad->message && strcmp(err.message, expected)))
            fail_msg("%s gives status %d: %s", bad->to, status, err.message);
        free(text);
    }
    free(path);
}

/* What is possible by itself but not beside the rest. */
static void test_contradictions(void **state)
{
    static const struct bad_value cases[] = {
        {"\"num_experts_per_tok\":3", "\"num_experts_per_tok\":9",
         "decoder: num_experts_per_tok is 9, but there are 8 experts", FATHOM_EFORMAT},
        {"\"num_attention_heads\":4", "\"num_attention_heads\":3",
         "tensor 'model.layers.0.self_attn.q_proj.weight' has 64 rows, expected 3 heads of 16", FATHOM_EFORMAT},
        {"\"head_dim\":16,", "\"head_dim\":32,",
         "tensor 'model.layers.0.self_attn.q_proj.weight' has 64 rows, expected 4 heads of 32", FATHOM_EFORMAT},
        {"\"num_key_value_heads\":4", "\"num_key_value_heads\":2",
         "tensor 'model.layers.0.self_attn.k_proj.weight' has 64 rows, expected 2 heads of 16", FATHOM_EFORMAT},
        {"\"num_attention_heads\":2,\"num_key_value_heads\":1", "\"num_attention_heads\":3,\"num_key_value_heads\":1",
         "tensor 'model.qwen2_model.model.model.layers.0.self_attn.q_proj.weight' has 32 rows, expected a multiple of "
         "3 "
         "heads",
         FATHOM_EFORMAT},
        {"\"eos_token_id\":1", "\"eos_token_id\":2048",
         "decoder: bos_token_id 0 or eos_token_id 2048 is outside the vocabulary of 2048", FATHOM_EFORMAT},
    };
    char expected[1024];
    struct model_config c;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fathom_err err = {0};
        char *text = replaced(native, cases[i].from, cases[i].to);
        write_text(dir, "config.json", text);
        assert_int_equal(config_load(&c, dir, weights, &err), cases[i].status);
        snprintf(expected, sizeof expected, "'%s': %s", dir, cases[i].message);
        assert_string_equal(err.message, expected);
        free(text);
    }
}

static void test_odd_tensors(void **state)
{
    static const struct {
        const char *name;
        struct tensor tensor;
        const char *message;
    } cases[] = {
        {"model.sam_model.pos_embed",
         {.n_dims = 4, .shape = {1, 0, 64, 32}},
         "tensor 'model.sam_model.pos_embed' has shape [1, 0, 64, 32], expected extents from 1 to 4194304"},
        {"model.embed_tokens.weight",
         {.n_dims = 1, .shape = {64}},
         "tensor 'model.embed_tokens.weight' has shape [64], expected 2 dimensions"},
    };
    (void)state;
    write_text(dir, "config.json", native);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[512];
        struct fathom_err err = {0};
        struct model_config c;
        struct weights *w;
        assert_int_equal(weights_create(&w, NULL), 0);
        for (size_t j = 0; j < weights_count(weights); j++) {
            const struct weight *weight = weights_at(weights, j);
            struct tensor t = strcmp(weight->name, cases[i].name) ? weight->tensor : cases[i].tensor;
            t.data = NULL; /* only shapes are looked at */
            assert_int_equal(weights_add(w, weight->name, &t, NULL), 0);
        }
        assert_int_equal(config_load(&c, dir, w, &err), FATHOM_EFORMAT);
        snprintf(expected, sizeof expected, "'%s': %s", dir, cases[i].message);
        assert_string_equal(err.message, expected);
        weights_close(w);
    }
}

static void test_missing_files(void **state)
{
    struct model_config c;
    struct fathom_err err;
    char expected[512];
    struct weights *none;
    (void)state;
    assert_int_equal(config_load(&c, dir, weights, &err), FATHOM_EIO);
    snprintf(expected, sizeof expected, "cannot open '%s/config.json': No such file or directory", dir);
    assert_string_equal(err.message, expected);
    write_text(dir, "config.json", native);
    assert_int_equal(weights_create(&none, NULL), 0);
    assert_int_equal(config_load(&c, dir, none, &err), FATHOM_EFORMAT);
    snprintf(expected, sizeof expected, "'%s': tensor 'model.embed_tokens.weight' is missing", dir);
    assert_string_equal(err.message, expected);
    weights_close(none);
}

/* A fine-tuned model may call itself anything; its tensors show what it is. */
static void test_unknown_architecture(void **state)
{
    struct model_config c, expected = tiny_config();
    struct fathom_err err;
    char *text = replaced(native, "DeepseekOcr2ForConditionalGeneration", "MyOcr"),
         *other = replaced(text, "deepseek_ocr2", "my_ocr"), *path = temp_path(dir, "config.json"), message[512];
    (void)state;
    write_text(dir, "config.json", other);
    c = expect_load(weights);
    expect_equal(&c, &expected);
    assert_int_equal(config_read(&c, path, &err), FATHOM_EUNSUPPORTED);
    snprintf(message, sizeof message, "'%s': architecture 'MyOcr' is not supported", path);
    assert_string_equal(err.message, message);
    free(text);
    free(other);
    free(path);
}

/* What neither the tensors nor the file say is not guessed. */
static void test_says_too_little(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{}", "language_config.num_attention_heads is missing, and no tensor shows it"},
        {"{\"num_attention_heads\":4}", "language_config.num_experts_per_tok is missing, and no tensor shows it"},
        {"{\"text_config\":{\"num_attention_heads\":4}}",
         "text_config.num_experts_per_tok is missing, and no tensor shows it"},
        {"{\"text_config\":{\"num_attention_heads\":4,\"num_experts_per_tok\":3}}",
         "vision_config.encoder_config.num_attention_heads is missing, and no tensor shows it"},
    };
    static const char no_model[] = "no model is named, neither in architectures nor in model_type";
    char *path = temp_path(dir, "config.json"), message[512];
    struct fathom_err err;
    struct model_config c;
    struct weights *none;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text(dir, "config.json", cases[i].text);
        assert_int_equal(config_load(&c, dir, weights, &err), FATHOM_EFORMAT);
        snprintf(message, sizeof message, "'%s': %s", path, cases[i].message);
        assert_string_equal(err.message, message);
    }
    write_text(dir, "config.json", "{\"num_attention_heads\":4,\"num_experts_per_tok\":3}");
    assert_int_equal(weights_create(&none, NULL), 0);
    snprintf(message, sizeof message, "'%s': %s", path, no_model);
    assert_int_equal(config_load(&c, dir, none, &err), FATHOM_EFORMAT);
    assert_string_equal(err.message, message);
    assert_int_equal(config_read(&c, path, &err), FATHOM_EFORMAT);
    assert_string_equal(err.message, message);
    weights_close(none);
    free(path);
}

static void test_views(void **state)
{
    static const struct {
        const char *text;
        struct view_config view;
    } cases[] = {
        {"{}", {true, false, 1024, 768, 2, 6, {.5f, .5f, .5f}, {.5f, .5f, .5f}, {127, 127, 127}}},
        {"{\"crop_to_patches\":false,\"tile_size\":1024,\"size\":{\"height\":1024,\"width\":1024},"
         "\"background_color\":[1,2,255],\"image_mean\":[0.5,0.25,0],\"image_std\":1}",
         {false, false, 1024, 1024, 2, 6, {.5f, .25f, 0}, {1, 1, 1}, {1, 2, 255}}},
        {"{\"crop_to_patches\":false}",
         {false, false, 768, 768, 2, 6, {.5f, .5f, .5f}, {.5f, .5f, .5f}, {127, 127, 127}}},
        {"{\"min_patches\":1,\"max_patches\":9,\"size\":768,\"do_normalize\":false,\"background_color\":9,"
         "\"resample\":3,\"rescale_factor\":0.00392156862745098,\"do_resize\":true}",
         {true, false, 768, 768, 1, 9, {0, 0, 0}, {1, 1, 1}, {9, 0, 0}}},
    };
    struct model_config c;
    (void)state;
    write_text(dir, "config.json", native);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text(dir, "preprocessor_config.json", cases[i].text);
        c = expect_load(weights);
        assert_memory_equal(&c.view, &cases[i].view, sizeof c.view);
    }
    write_text(dir, "processor_config.json", "{\"image_token\":\"<image>\"}"); /* the published file */
    assert_int_equal(expect_load(weights).view.max_tiles, 9);
    write_text(dir, "processor_config.json", "{\"image_processor\":{\"max_patches\":4}}");
    assert_int_equal(expect_load(weights).view.max_tiles, 4);
}

static void test_bad_views(void **state)
{
    static const struct {
        const char *text, *message;
        enum fathom_status status;
    } cases[] = {
        {"{\"tile_size\":640}", "views of 640 pixels, expected 768 or 1024", FATHOM_EUNSUPPORTED},
        {"{\"size\":1025}", "views of 1025 pixels, expected 768 or 1024", FATHOM_EUNSUPPORTED},
        {"{\"tile_size\":0}", "tile_size is 0, expected a whole number from 1 to 4096", FATHOM_EFORMAT},
        {"{\"size\":{\"longest_edge\":1024}}", "size is an object, expected a height and a width", FATHOM_EUNSUPPORTED},
        {"{\"size\":{\"height\":1024,\"width\":768}}", "size.width is 768, expected the height", FATHOM_EUNSUPPORTED},
        {"{\"min_patches\":7}", "min_patches is 7, more than max_patches, which is 6", FATHOM_EFORMAT},
        {"{\"max_patches\":1000000}", "max_patches is 1000000, expected a whole number from 1 to 64", FATHOM_EFORMAT},
        {"{\"image_std\":[0.5,0,0.5]}",
         "image_std is a list, expected a finite number or a list of three, no deviation being 0", FATHOM_EFORMAT},
        {"{\"image_mean\":[0.5]}",
         "image_mean is a list, expected a finite number or a list of three, no deviation being 0", FATHOM_EFORMAT},
        {"{\"image_mean\":[1e999,0,0]}",
         "image_mean is a list, expected a finite number or a list of three, no deviation being 0", FATHOM_EFORMAT},
        {"{\"background_color\":[1,2]}", "background_color is a list, expected three whole numbers from 0 to 255",
         FATHOM_EFORMAT},
        {"{\"background_color\":[1,2,256]}", "background_color is 256, expected a whole number from 0 to 255",
         FATHOM_EFORMAT},
        {"{\"resample\":2}", "resample is 2, expected 3 (bicubic)", FATHOM_EUNSUPPORTED},
        {"{\"do_rescale\":false}", "do_rescale is false, expected true", FATHOM_EUNSUPPORTED},
        {"{\"rescale_factor\":1}", "rescale_factor is 1, expected 1/255", FATHOM_EUNSUPPORTED},
        {"{\"crop_to_patches\":1}", "crop_to_patches is 1, expected true or false", FATHOM_EFORMAT},
        {"[]", "not a JSON object", FATHOM_EFORMAT},
    };
    (void)state;
    write_text(dir, "config.json", native);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[512];
        struct fathom_err err = {0};
        struct model_config c;
        write_text(dir, "preprocessor_config.json", cases[i].text);
        enum fathom_status status = config_load(&c, dir, weights, &err);
        snprintf(expected, sizeof expected, "'%s/preprocessor_config.json': %s", dir, cases[i].message);
        assert_string_equal(err.message, expected);
        assert_int_equal(status, cases[i].status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_native, forget_json),
        cmocka_unit_test_setup(test_published, forget_json),
        cmocka_unit_test_setup(test_tensors_win, forget_json),
        cmocka_unit_test_setup(test_read_without_weights, forget_json),
        cmocka_unit_test_setup(test_bad_values, forget_json),
        cmocka_unit_test_setup(test_contradictions, forget_json),
        cmocka_unit_test_setup(test_odd_tensors, forget_json),
        cmocka_unit_test_setup(test_missing_files, forget_json),
        cmocka_unit_test_setup(test_unknown_architecture, forget_json),
        cmocka_unit_test_setup(test_says_too_little, forget_json),
        cmocka_unit_test_setup(test_views, forget_json),
        cmocka_unit_test_setup(test_bad_views, forget_json),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
