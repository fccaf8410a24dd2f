/* Grid choice, fit-and-pad and the views that the vision tower gets. */
#include "picture.h"

#include "image/views.h"

#include <math.h>

static const uint8_t grey[3] = {127, 127, 127};

static void check_grid(int w, int h, int side, int max, int across, int down)
{
    int i = 0, j = 0;
    choose_grid(w, h, side, 2, max, &i, &j);
    if (i != across || j != down)
        fail_msg("%d x %d with tiles of %d, at most %d: grid %d x %d, expected %d x %d", w, h, side, max, i, j, across,
                 down);
}

static void grid_examples(void **state)
{
    (void)state;
    for (int max = 6; max <= 9; max += 3)
        for (int side = 640; side <= 768; side += 128) {
            check_grid(1240, 1754, side, max, 2, 3);
            check_grid(1000, 1000, side, max, 2, 2);
            check_grid(800, 600, side, max, 3, 2);
            check_grid(side, side, side, max, 1, 1);
            check_grid(1, 1, side, max, 1, 1);
            check_grid(side + 1, side + 1, side, max, 2, 2);
            check_grid(20000, 30, side, max, max, 1);
            check_grid(30, 20000, side, max, 1, max);
        }
    check_grid(1920, 1080, 768, 6, 2, 1);
    check_grid(1920, 1080, 640, 9, 4, 2);
    check_grid(800, 10, 768, 1, 1, 1); /* no grid within the limits */
}

/* A picture with exactly a grid's proportions gets that grid, or one as proportioned with more tiles when it is large. */
static void every_grid(void **state)
{
    (void)state;
    for (int max = 2; max <= 9; max++)
        for (int i = 1; i <= max; i++)
            for (int j = 1; i * j <= max; j++) {
                int across, down;
                if (i == j && max < 4)
                    continue;
                choose_grid(i * 800, j * 800, 768, 2, max, &across, &down);
                assert_int_equal(across * j, down * i);
                assert_true(across * down >= i * j || i * j == 1);
                assert_in_range(across * down, 2, max);
            }
}

/* 1:1 ties between 2x2 and 3x3: the larger grid needs more than half of its pixels. */
static void larger_grid_wins_ties(void **state)
{
    (void)state;
    int half = (int)ceil(sqrt(0.5 * 640 * 640 * 9));
    check_grid(half, half, 640, 9, 3, 3);
    check_grid(half - 1, half - 1, 640, 9, 2, 2);
}

/* Where the picture starts for a leftover of 0 to 11 pixels: half of it, rounded half to even. */
static void paste_offsets(void **state)
{
    enum { SIDE = 64 };
    static const int offsets[] = {0, 0, 1, 2, 2, 2, 3, 4, 4, 4, 5, 6};
    static uint8_t src[SIDE * SIDE * 3], dst[SIDE * SIDE * 3];
    struct fathom_err err;
    (void)state;
    memset(src, 255, sizeof src);
    for (int leftover = 0; leftover < 12; leftover++)
        for (int wide = 0; wide < 2; wide++) {
            int w = wide ? SIDE : SIDE - leftover, h = wide ? SIDE - leftover : SIDE;
            assert_int_equal(image_fit_pad(dst, SIDE, src, w, h, grey, &err), FATHOM_OK);
            for (int i = 0; i < SIDE; i++) {
                bool inside = i >= offsets[leftover] && i < offsets[leftover] + SIDE - leftover;
                assert_int_equal(dst[3 * (wide ? i * SIDE + 5 : 5 * SIDE + i)], inside ? 255 : 127);
            }
        }
}

/* The short side is never rounded to nothing. */
static void extreme_shapes(void **state)
{
    enum { SIDE = 32 };
    static uint8_t src[20000 * 3], dst[SIDE * SIDE * 3];
    static const uint8_t background[3] = {1, 2, 3};
    struct fathom_err err;
    (void)state;
    memset(src, 200, sizeof src);
    for (int wide = 0; wide < 2; wide++) {
        int n_filled = 0;
        assert_int_equal(image_fit_pad(dst, SIDE, src, wide ? 20000 : 1, wide ? 1 : 20000, background, &err),
                         FATHOM_OK);
        for (int i = 0; i < SIDE * SIDE; i++) {
            bool filled = dst[3 * i] == 200;
            n_filled += filled;
            assert_int_equal(dst[3 * i + 2], filled ? 200 : 3);
        }
        assert_int_equal(n_filled, SIDE);
    }
    assert_int_equal(image_fit_pad(dst, 0, src, 1, 1, background, &err), FATHOM_EINVAL);
    assert_int_equal(image_resize(dst, 1, 1, src, 0, 1, &err), FATHOM_EINVAL);
}

/* A window that no output pixel may leave: constants stay constant at every scale. */
static void constants(void **state)
{
    static uint8_t src[70 * 50 * 3], dst[90 * 90 * 3];
    struct fathom_err err;
    (void)state;
    for (size_t i = 0; i < sizeof src; i++)
        src[i] = (uint8_t)(i % 3 * 120);
    for (int w = 1; w < 90; w += 11)
        for (int h = 1; h < 90; h += 8) {
            assert_int_equal(image_resize(dst, w, h, src, 70, 50, &err), FATHOM_OK);
            for (int i = 0; i < w * h * 3; i++)
                assert_int_equal(dst[i], i % 3 * 120);
        }
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

static struct view_config config(bool tiles)
{
    return (struct view_config){
        .tiles = tiles,
        .base_side = 32,
        .tile_side = 24,
        .min_tiles = 2,
        .max_tiles = 6,
        .mean = {0.5f, 0.25f, 0.5f},
        .std = {0.5f, 0.5f, 0.125f},
        .background = {127, 127, 127},
    };
}

static uint8_t *make_picture(int w, int h)
{
    uint8_t *rgb = malloc((size_t)w * (size_t)h * 3);
    assert_non_null(rgb);
    for (size_t i = 0; i < (size_t)w * (size_t)h * 3; i++)
        rgb[i] = (uint8_t)((i + 1) * 2654435761u >> 13);
    return rgb;
}

static void check_plane(const float *planes, const uint8_t *rgb, size_t stride, int side, const struct view_config *c)
{
    for (int k = 0; k < 3; k++)
        for (int y = 0; y < side; y++)
            for (int x = 0; x < side; x++) {
                float got = planes[(k * side + y) * side + x];
                float scaled = (float)rgb[(size_t)y * stride + (size_t)(3 * x + k)] / 255.0f;
                assert_true(got == (scaled - c->mean[k]) / c->std[k]);
            }
}

static void tiles_and_global(void **state)
{
    (void)state;
    struct view_config c = config(true);
    struct views v;
    struct fathom_err err;
    uint8_t *rgb = make_picture(60, 85), square[32 * 32 * 3], whole[48 * 72 * 3];
    assert_int_equal(views_make(&v, rgb, 60, 85, &c, &err), FATHOM_OK);
    assert_int_equal(v.across, 2);
    assert_int_equal(v.down, 3);
    assert_int_equal(v.n_local, 6);
    assert_int_equal(v.base_side, 32);
    assert_int_equal(v.tile_side, 24);
    assert_int_equal(image_fit_pad(square, 32, rgb, 60, 85, c.background, &err), FATHOM_OK);
    check_plane(v.global, square, 32 * 3, 32, &c);
    assert_int_equal(image_resize(whole, 48, 72, rgb, 60, 85, &err), FATHOM_OK);
    for (int t = 0; t < 6; t++)
        check_plane(v.local + t * 3 * 24 * 24, whole + (t / 2 * 24 * 48 + t % 2 * 24) * 3, 48 * 3, 24, &c);
    views_free(&v);
    assert_null(v.global);
    free(rgb);
}

static void global_alone(void **state)
{
    (void)state;
    struct views v;
    struct fathom_err err;
    uint8_t *rgb = make_picture(60, 85);
    for (int tiles = 0; tiles < 2; tiles++) {
        struct view_config c = config(tiles);
        int w = tiles ? 24 : 60, h = tiles ? 13 : 85; /* small enough, or tiles turned off */
        assert_int_equal(views_make(&v, rgb, w, h, &c, &err), FATHOM_OK);
        assert_int_equal(v.across * v.down, 1);
        assert_int_equal(v.n_local, 0);
        assert_null(v.local);
        assert_non_null(v.global);
        views_free(&v);
    }
    free(rgb);
}

/* The published padding in float32. */
static void padding_value(void **state)
{
    (void)state;
    struct view_config c = config(false);
    struct views v;
    struct fathom_err err;
    uint8_t pixel[2 * 3] = {0};
    c.mean[0] = c.std[0] = 0.5f;
    assert_int_equal(views_make(&v, pixel, 2, 1, &c, &err), FATHOM_OK);
    assert_true(v.global[0] == -0.0039215684f);
    assert_true(v.global[16 * 32] == -1.0f);
    views_free(&v);
}

static void bad_configs(void **state)
{
    (void)state;
    struct views v;
    struct fathom_err err;
    uint8_t pixel[3] = {0};
    static const size_t huge = SIZE_MAX;
    struct view_config bad[8];
    for (int i = 0; i < 8; i++)
        bad[i] = config(true);
    bad[0].base_side = 0;
    bad[1].base_side = huge;
    bad[2].tile_side = 0;
    bad[3].tile_side = huge;
    bad[4].max_tiles = huge;
    bad[5].min_tiles = 0;
    bad[6].min_tiles = 7;
    bad[7].max_tiles = 0;
    for (int i = 0; i < 8; i++) {
        assert_int_equal(views_make(&v, pixel, 1, 1, &bad[i], &err), FATHOM_EINVAL);
        assert_null(v.global);
    }
    struct view_config good = config(true);
    assert_int_equal(views_make(&v, pixel, 0, 1, &good, &err), FATHOM_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grid_examples),    cmocka_unit_test(every_grid),     cmocka_unit_test(larger_grid_wins_ties),
        cmocka_unit_test(paste_offsets),    cmocka_unit_test(extreme_shapes), cmocka_unit_test(constants),
        cmocka_unit_test(tiles_and_global), cmocka_unit_test(global_alone),   cmocka_unit_test(padding_value),
        cmocka_unit_test(bad_configs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
