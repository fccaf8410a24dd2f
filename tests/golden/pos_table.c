/* Position tables resized, against PyTorch (golden_misc). */
#include <stdio.h>
#include <stdlib.h>

#include "base/half.h"
#include "golden/golden.h"
#include "vision/pos_table.h"
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

static void check(const struct tensor *got, const char *name)
{
    const struct tensor *want = golden_get(&golden, name);
    const float *a = got->data, *b = want->data;
    assert_int_equal(tensor_elements(got), tensor_elements(want));
    for (size_t i = 0; i < tensor_elements(want); i++)
        if (!(fabsf(a[i] - b[i]) <= 2e-5f))
            fail_msg("%s: element %zu is %g, expected %g", name, i, (double)a[i], (double)b[i]);
}

static void test_2d(void **state)
{
    static const size_t sides[] = {48, 40, 32, 20, 80};
    static uint16_t table[64 * 64 * 8];
    struct arena arena;
    struct tensor t = tensor_4d(DTYPE_BF16, table, 1, 64, 64, 8);
    char name[64];

    (void)state;
    synth_fill_bf16(table, "misc.pos_embed", 0, 64 * 64 * 8, 0, 0.5f, NULL);
    arena_init(&arena, SIZE_MAX);
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        struct run run = {.kernels = &kernels_ref, .arena = &arena};
        struct tensor got = pos_table_2d(&run, &t, 64, sides[i]);
        assert_true(run_ok(&run));
        snprintf(name, sizeof name, "abs_pos.64to%zu", sides[i]);
        check(&got, name);
    }
    arena_release(&arena);
}

static void test_1d(void **state)
{
    static const size_t sides[] = {48, 40, 14, 32, 80};
    static uint16_t table[127 * 16];
    struct arena arena;
    struct tensor t = tensor_2d(DTYPE_BF16, table, 127, 16);
    char name[64];

    (void)state;
    synth_fill_bf16(table, "misc.rel_pos", 0, 127 * 16, 0, 0.5f, NULL);
    arena_init(&arena, SIZE_MAX);
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        struct run run = {.kernels = &kernels_ref, .arena = &arena};
        struct tensor got = pos_table_1d(&run, &t, 2 * sides[i] - 1);
        assert_true(run_ok(&run));
        snprintf(name, sizeof name, "rel_pos.127to%zu", 2 * sides[i] - 1);
        check(&got, name);
    }
    arena_release(&arena);
}

/* At the table's own size the values are the table's. */
static void test_identity(void **state)
{
    static uint16_t table[9 * 4];
    struct arena arena;
    struct tensor t = tensor_4d(DTYPE_BF16, table, 1, 3, 3, 4);

    (void)state;
    synth_fill_bf16(table, "any", 0, 36, 0, 0.5f, NULL);
    arena_init(&arena, SIZE_MAX);
    struct run run = {.kernels = &kernels_ref, .arena = &arena};
    struct tensor got = pos_table_2d(&run, &t, 3, 3);
    for (size_t i = 0; i < 36; i++)
        assert_true(((const float *)got.data)[i] == bf16_to_f32(table[i]));
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_2d),
        cmocka_unit_test(test_1d),
        cmocka_unit_test(test_identity),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
