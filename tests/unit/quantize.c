/* Q8_0 blocks, and folders made of them. */
#include "weights/quantize.h"
#include "base/half.h"
#include "support.h"
#include "tiny_model.h"
#include "weights/q8_0.h"
#include "weights/safetensors.h"
#include "weights/synth.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_blocks_worked_by_hand(void **state)
{
    float x[64] = {127, -127, 63.5f, -63.5f, 0.49f, 0.5f}, back[64];
    uint8_t blocks[68];
    (void)state;
    x[32] = 0x1p-30f; /* a scale below the smallest f16 becomes 0, and so does the block */
    q8_0_from_f32(blocks, x, 64);
    static const int8_t expected[6] = {127, -127, 64, -64, 0, 1}; /* ties away from zero */
    assert_int_equal(blocks[0] | blocks[1] << 8, 0x3c00);         /* 1 in f16 */
    assert_memory_equal(blocks + 2, expected, 6);
    assert_int_equal(blocks[34] | blocks[35] << 8, 0);
    q8_0_to_f32(back, blocks, 64);
    assert_true(back[0] == 127 && back[3] == -64 && back[6] == 0 && back[32] == 0);
}

/* Half a step, and the rounding of the scale. */
static void test_error_is_bounded(void **state)
{
    enum { N = 32 * 1000 };
    static float x[N], back[N];
    static uint8_t blocks[N / 32 * 34];
    (void)state;
    synth_fill_f32(x, "q8_0", 0, N, 0, 0.05f, NULL);
    q8_0_from_f32(blocks, x, N);
    q8_0_to_f32(back, blocks, N);
    for (size_t b = 0; b < N; b += 32) {
        float most = 0;
        for (size_t i = b; i < b + 32; i++)
            most = fmaxf(most, fabsf(x[i]));
        for (size_t i = b; i < b + 32; i++)
            assert_true(fabsf(back[i] - x[i]) <= most * (0.5f / 127 + 0x1p-11f) * 1.001f);
    }
}

static void test_extremes_stay_finite(void **state)
{
    float x[32] = {3e38f, -3e38f, 1}, back[32];
    uint8_t block[34];
    (void)state;
    q8_0_from_f32(block, x, 32);
    q8_0_to_f32(back, block, 32);
    assert_true(back[0] == 127 * 65504.0f && back[1] == -back[0] && back[2] == 0);
}

static bool is_quantized(const struct weights *w, const char *name)
{
    const struct weight *weight = weights_find(w, name);
    assert_non_null(weight);
    return weight->tensor.dtype == DTYPE_Q8_0;
}

/* Every tensor comes back: as Q8_0 within its error, or bit for bit. */
static void test_folder(void **state)
{
    struct model_config c = tiny_config();
    struct weights *w, *q;
    struct fathom_err err;
    char *dir = temp_create(), *path = temp_path(dir, "model.safetensors");
    (void)state;
    assert_int_equal(synth_ocr_weights(&w, &c, NULL, NULL), 0);
    assert_int_equal(quantize_write(path, w, NULL), 0);
    if (weights_open(&q, dir, &err))
        fail_msg("%s", err.message);
    assert_int_equal(weights_count(q), weights_count(w));
    assert_int_equal(weights_copied_bytes(q), 0); /* all aligned */
    for (size_t i = 0; i < weights_count(w); i++) {
        const struct weight *a = weights_at(w, i), *b = weights_find(q, a->name);
        assert_non_null(b);
        assert_int_equal(b->tensor.dtype == DTYPE_Q8_0, quantize_wants(a));
        if (b->tensor.dtype != DTYPE_Q8_0) {
            assert_int_equal(a->bytes, b->bytes);
            assert_memory_equal(a->tensor.data, b->tensor.data, a->bytes);
            continue;
        }
        size_t n = tensor_elements(&a->tensor);
        float *back = malloc(n * sizeof *back);
        double error = 0, total = 0;
        q8_0_to_f32(back, b->tensor.data, n);
        for (size_t j = 0; j < n; j++) {
            float x = bf16_to_f32(((const uint16_t *)a->tensor.data)[j]);
            error += (double)(back[j] - x) * (back[j] - x);
            total += (double)x * x;
        }
        free(back);
        assert_true(error < 1e-4 * total);
    }
    assert_true(is_quantized(q, "model.embed_tokens.weight"));
    assert_true(is_quantized(q, "lm_head.weight"));
    assert_true(is_quantized(q, "model.sam_model.patch_embed.proj.weight"));
    assert_false(is_quantized(q, "model.layers.1.mlp.gate.weight"));
    assert_false(is_quantized(q, "model.sam_model.pos_embed"));
    assert_false(is_quantized(q, "model.sam_model.blocks.0.attn.rel_pos_h"));
    assert_false(is_quantized(q, "model.qwen2_model.query_768.weight"));
    assert_false(is_quantized(q, "model.norm.weight"));
    assert_false(is_quantized(q, "model.sam_model.blocks.0.mlp.lin2.weight")); /* rows of 48 */
    struct tensor t;
    assert_int_equal(
        weights_get(q, &t, 4, (size_t[]){c.sam.dim, 3, 16, 16}, NULL, "model.sam_model.patch_embed.proj.weight"), 0);

    char *second = temp_create(), *again = temp_path(second, "model.safetensors");
    assert_int_equal(quantize_write(again, q, NULL), 0); /* quantised already: nothing changes */
    struct safetensors a, b;
    assert_int_equal(safetensors_open(&a, path, NULL), 0);
    assert_int_equal(safetensors_open(&b, again, NULL), 0);
    assert_int_equal(a.file.size, b.file.size);
    assert_memory_equal(a.file.data, b.file.data, a.file.size);
    safetensors_close(&a);
    safetensors_close(&b);
    weights_close(w);
    weights_close(q);
    free(path);
    free(again);
    temp_remove(second);
    temp_remove(dir);
}

static void test_refuses_nan(void **state)
{
    struct weights *w;
    struct fathom_err err;
    float *data = calloc(64, sizeof *data);
    char *dir = temp_create(), *path = temp_path(dir, "model.safetensors");
    struct tensor t = tensor_2d(DTYPE_F32, data, 2, 32);
    (void)state;
    data[40] = NAN;
    assert_int_equal(weights_create(&w, NULL), 0);
    assert_int_equal(weights_add(w, "x.weight", &t, NULL), 0);
    assert_int_equal(quantize_write(path, w, &err), FATHOM_ENUMERIC);
    assert_string_equal(err.message, "tensor 'x.weight' holds NaN or infinity");
    data[40] = -INFINITY;
    assert_int_equal(quantize_write(path, w, &err), FATHOM_ENUMERIC);
    weights_close(w);
    free(path);
    temp_remove(dir);
}

/* The model that comes with the sources. */
static void test_built_in_model(void **state)
{
    struct weights *w;
    struct model_config c;
    struct fathom_err err;
    const char *name;
    size_t n = 0;
    (void)state;
    if (weights_open(&w, "models/mini", &err) || config_load(&c, "models/mini", w, &err))
        fail_msg("%s", err.message);
    struct tensor_spec *specs;
    assert_int_equal(ocr_tensors(&specs, &n, &c, NULL), 0);
    assert_int_equal(weights_count(w), n);
    for (size_t i = 0; i < n; i++) {
        struct tensor t;
        if (weights_get(w, &t, specs[i].n_dims, specs[i].shape, &err, "%s", specs[i].name))
            fail_msg("%s", err.message);
    }
    assert_false(weights_find_nonfinite(w, &name));
    assert_true(weights_mapped_bytes(w) < (size_t)30 << 20);
    assert_int_equal(weights_copied_bytes(w), 0);
    assert_false(c.view.tiles);
    assert_int_equal(c.view.base_side, 1024);
    free(specs);
    weights_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_worked_by_hand), cmocka_unit_test(test_error_is_bounded),
        cmocka_unit_test(test_extremes_stay_finite),  cmocka_unit_test(test_folder),
        cmocka_unit_test(test_refuses_nan),           cmocka_unit_test(test_built_in_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
