/* Modes: which views each has, which model knows it, and how many vision tokens a page then is (spec deepseek-ocr §2.1). */
#include "engine/mode.h"
#include "image/views.h"
#include "models/deepseek_ocr1.h"
#include "models/deepseek_ocr2.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct model_config ocr1, ocr2;

static int setup(void **state)
{
    (void)state;
    ocr1 = config_ocr1_published();
    ocr2 = config_ocr2_published();
    return 0;
}

static size_t tokens(const struct model_config *c, const struct view_config *v, int across, int down)
{
    struct picture p = {.base_side = v->base_side,
                        .tile_side = v->tile_side,
                        .across = (size_t)across,
                        .down = (size_t)down,
                        .n_local = across * down > 1 ? (size_t)(across * down) : 0};
    static struct ocr1 one;
    static struct ocr2 two;
    one.sam.cfg = two.sam.cfg = c->sam;
    return c->kind == MODEL_OCR1 ? ocr1_image_tokens(&one, &p) : ocr2_image_tokens(&two, &p);
}

static void test_single_views(void **state)
{
    static const struct {
        enum fathom_mode mode;
        size_t side, tokens;
        bool stretch;
    } modes[] = {
        {FATHOM_MODE_TINY, 512, 73, true},
        {FATHOM_MODE_SMALL, 640, 111, true},
        {FATHOM_MODE_BASE, 1024, 273, false},
        {FATHOM_MODE_LARGE, 1280, 421, false},
    };
    struct view_config v;
    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(mode_views(&v, &ocr1, modes[i].mode, 0, NULL), FATHOM_OK);
        assert_false(v.tiles);
        assert_int_equal(v.base_side, modes[i].side);
        assert_int_equal(v.stretch, modes[i].stretch);
        assert_int_equal(tokens(&ocr1, &v, 1, 1), modes[i].tokens);
    }
    assert_int_equal(mode_views(&v, &ocr2, FATHOM_MODE_BASE, 0, NULL), FATHOM_OK);
    assert_false(v.tiles || v.stretch);
    assert_int_equal(tokens(&ocr2, &v, 1, 1), 257);
}

/* Every grid of the specification's table; 0: the model does not make it. */
static void test_tiles(void **state)
{
    static const struct {
        int across, down;
        size_t ocr1, ocr2;
    } grids[] = {
        {1, 1, 273, 257},  {1, 2, 493, 545},  {2, 1, 483, 545}, {1, 3, 603, 689},  {3, 1, 583, 689},  {1, 4, 713, 833},
        {4, 1, 683, 833},  {1, 5, 823, 977},  {5, 1, 783, 977}, {1, 6, 933, 1121}, {6, 1, 883, 1121}, {2, 2, 693, 833},
        {2, 3, 903, 1121}, {3, 2, 893, 1121}, {3, 3, 1203, 0},  {2, 4, 1113, 0},   {4, 2, 1093, 0},   {1, 7, 1043, 0},
        {7, 1, 983, 0},    {1, 8, 1153, 0},   {8, 1, 1083, 0},  {1, 9, 1263, 0},   {9, 1, 1183, 0},
    };
    struct view_config one, two;
    (void)state;
    assert_int_equal(mode_views(&one, &ocr1, FATHOM_MODE_GUNDAM, 0, NULL), FATHOM_OK);
    assert_int_equal(mode_views(&two, &ocr2, FATHOM_MODE_GUNDAM, 0, NULL), FATHOM_OK);
    assert_int_equal(one.max_tiles, 9);
    assert_int_equal(two.max_tiles, 6);
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        int across, down, w = 640 * grids[i].across, h = 640 * grids[i].down; /* pages of exactly that shape */
        assert_int_equal(tokens(&ocr1, &one, grids[i].across, grids[i].down), grids[i].ocr1);
        choose_grid(w, h, (int)one.tile_side, (int)one.min_tiles, (int)one.max_tiles, &across, &down);
        assert_true(across == grids[i].across && down == grids[i].down);
        if (grids[i].ocr2) {
            assert_int_equal(tokens(&ocr2, &two, grids[i].across, grids[i].down), grids[i].ocr2);
            continue;
        }
        choose_grid(2 * w, 2 * h, (int)two.tile_side, (int)two.min_tiles, (int)two.max_tiles, &across, &down);
        assert_true(across * down <= 6);
    }
}

/* The default is what the folder says; a mode keeps its colours and, where they serve, its sizes. */
static void test_folder(void **state)
{
    struct model_config c = ocr2;
    struct view_config v;
    (void)state;
    assert_int_equal(mode_views(&v, &c, FATHOM_MODE_DEFAULT, 0, NULL), FATHOM_OK);
    assert_memory_equal(&v, &c.view, sizeof v);
    c.view.tiles = false; /* as the built-in model's folder says */
    c.view.tile_side = c.view.base_side = 768;
    c.view.background[1] = 9;
    assert_int_equal(mode_views(&v, &c, FATHOM_MODE_DEFAULT, 0, NULL), FATHOM_OK);
    assert_true(!v.tiles && v.base_side == 768);
    assert_int_equal(mode_views(&v, &c, FATHOM_MODE_BASE, 0, NULL), FATHOM_OK);
    assert_true(!v.tiles && v.base_side == 1024 && v.background[1] == 9);
    c.view.tile_side = c.view.base_side = 1024;
    assert_int_equal(mode_views(&v, &c, FATHOM_MODE_GUNDAM, 0, NULL), FATHOM_OK);
    assert_true(v.tiles && v.base_side == 1024 && v.tile_side == 768 && v.background[1] == 9);
    assert_true(v.min_tiles == 2 && v.max_tiles == 6);
    c = ocr2;
    c.view.base_side = 768; /* a folder of its own with tiles */
    c.view.max_tiles = 12;
    assert_int_equal(mode_views(&v, &c, FATHOM_MODE_GUNDAM, 0, NULL), FATHOM_OK);
    assert_true(v.base_side == 768 && v.max_tiles == 12);
}

static void test_max_tiles(void **state)
{
    static const int bad[] = {-1, 1, 65, 2147483647};
    struct fathom_err err;
    struct view_config v;
    (void)state;
    for (int n = 2; n <= 64; n += 31) {
        assert_int_equal(mode_views(&v, &ocr1, FATHOM_MODE_DEFAULT, n, NULL), FATHOM_OK);
        assert_int_equal(v.max_tiles, n);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(mode_views(&v, &ocr1, FATHOM_MODE_GUNDAM, bad[i], &err), FATHOM_EINVAL);
    assert_string_equal(err.message, "a limit of 2147483647 tiles, expected 2 to 64, or a mode without tiles");
    assert_int_equal(mode_views(&v, &ocr1, FATHOM_MODE_BASE, 1, NULL), FATHOM_OK); /* it has none to limit */
}

static void test_unknown(void **state)
{
    static const enum fathom_mode foreign[] = {FATHOM_MODE_TINY, FATHOM_MODE_SMALL, FATHOM_MODE_LARGE};
    struct fathom_err err;
    struct view_config v;
    (void)state;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(mode_views(&v, &ocr2, foreign[i], 0, &err), FATHOM_EUNSUPPORTED);
    assert_string_equal(err.message, "DeepSeek-OCR-2 has no mode 'large', only base and gundam");
    assert_int_equal(mode_views(&v, &ocr1, (enum fathom_mode)6, 0, &err), FATHOM_EINVAL);
    assert_string_equal(err.message, "mode 6 is none: tiny, small, base, large or gundam");
    assert_int_equal(mode_views(&v, &ocr1, (enum fathom_mode)(-1), 0, &err), FATHOM_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_views), cmocka_unit_test(test_tiles),   cmocka_unit_test(test_folder),
        cmocka_unit_test(test_max_tiles),    cmocka_unit_test(test_unknown),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
