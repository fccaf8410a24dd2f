/* Pillow's bicubic and ImageOps.pad on pictures that any program can make (golden_misc): sampled rows and the sum of all bytes,
 * bit for bit. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "golden/golden.h"
#include "image/views.h"
#include "weights/synth.h"

static struct safetensors golden;

static int setup(void **state)
{
    (void)state;
    golden = golden_open("tests/golden/golden_misc.safetensors");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    safetensors_close(&golden);
    return 0;
}

/* Gradients and noise, crossed by dark rows and light columns. The caller frees it. */
static uint8_t *make_picture(int w, int h)
{
    char name[64];
    uint8_t *rgb = malloc((size_t)w * (size_t)h * 3);
    assert_non_null(rgb);
    snprintf(name, sizeof name, "image.%dx%d", w, h);
    for (int y = 0, i = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            int at[3] = {x, y, x + y}, last[3] = {w - 1, h - 1, w + h - 2};
            for (int c = 0; c < 3; c++, i++) {
                int noise = (int)(synth_raw(name, (uint64_t)i) * 64);
                int v = at[c] * 191 / (last[c] > 1 ? last[c] : 1) + noise;
                rgb[i] = x % 53 == 7 ? 240 : y % 37 == 5 ? 12 : (uint8_t)(v > 255 ? 255 : v);
            }
        }
    return rgb;
}

static uint64_t sum_bytes(const uint8_t *bytes, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += bytes[i];
    return sum;
}

/* rows: every step-th row of got is a row of the golden tensor. */
static void check(const char *name, const uint8_t *got, int w, int h, int step, uint64_t sum)
{
    const struct tensor *want = golden_get(&golden, name);
    size_t row = (size_t)w * 3;
    assert_int_equal(want->n_dims, 3);
    assert_int_equal(want->shape[0], (h + step - 1) / step);
    assert_int_equal(want->shape[1], w);
    for (size_t i = 0; i < want->shape[0]; i++)
        for (size_t k = 0; k < row; k++) {
            int a = got[i * (size_t)step * row + k], b = ((const uint8_t *)want->data)[i * row + k];
            if (a != b)
                fail_msg("%s: byte %zu of row %zu is %d, expected %d", name, k, i * (size_t)step, a, b);
        }
    if (sum_bytes(got, row * (size_t)h) != sum)
        fail_msg("%s: the bytes add up to %" PRIu64 ", expected %" PRIu64, name, sum_bytes(got, row * (size_t)h), sum);
}

static void resize(void **state)
{
    static const struct {
        int w, h, to_w, to_h;
        uint64_t source_sum, sum;
    } cases[] = {
        {64, 48, 32, 24, 1155294, 288766},
        {64, 48, 100, 75, 1155294, 2820128},
        {300, 200, 1024, 683, 22604113, 263489811},
        {1700, 2200, 791, 1024, 1409108985, 305173960},
        {3000, 500, 1024, 171, 564881754, 65942981},
        {1, 1, 16, 16, 111, 28416},
        {33, 2000, 17, 1024, 25253297, 6660758},
        {640, 640, 640, 640, 154279872, 154279872},
        {50, 40, 7, 3, 764050, 8030},
        {1200, 1600, 1536, 2304, 723435668, 1333445860},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int w = cases[i].w, h = cases[i].h, to_w = cases[i].to_w, to_h = cases[i].to_h;
        char name[64];
        struct fathom_err err;
        uint8_t *src = make_picture(w, h), *dst = malloc((size_t)to_w * (size_t)to_h * 3);
        assert_true(sum_bytes(src, (size_t)w * (size_t)h * 3) == cases[i].source_sum);
        assert_int_equal(image_resize(dst, to_w, to_h, src, w, h, &err), FATHOM_OK);
        snprintf(name, sizeof name, "resize.%dx%d.%dx%d.rows", w, h, to_w, to_h);
        check(name, dst, to_w, to_h, to_h / 12 > 1 ? to_h / 12 : 1, cases[i].sum);
        free(src);
        free(dst);
    }
}

static void fit_and_pad(void **state)
{
    enum { SIDE = 1024, STEP = 93 };
    static const struct {
        int w, h;
        uint64_t sum;
    } cases[] = {
        {300, 200, 396528915},   {1700, 2200, 396077512}, {3000, 500, 398735813}, {33, 2000, 399535766},
        {1024, 1024, 395349200}, {641, 640, 394844977},   {1, 1, 116391936},
    };
    static const uint8_t background[3] = {127, 127, 127};
    uint8_t *dst = malloc(SIDE * SIDE * 3);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[64];
        struct fathom_err err;
        uint8_t *src = make_picture(cases[i].w, cases[i].h);
        assert_int_equal(image_fit_pad(dst, SIDE, src, cases[i].w, cases[i].h, background, &err), FATHOM_OK);
        snprintf(name, sizeof name, "pad1024.%dx%d.rows", cases[i].w, cases[i].h);
        check(name, dst, SIDE, SIDE, STEP, cases[i].sum);
        free(src);
    }
    free(dst);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(resize), cmocka_unit_test(fit_and_pad)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
