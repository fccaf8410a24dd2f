/* The views of every mode on pages of odd sizes, against Pillow: where the page lies, and all bytes (pillow_views.txt; its
 * lines are explained in pillow_views.py). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/mode.h"
#include "image/views.h"

#include <cmocka.h>

struct line {
    int w, h, side, box[4];
    char kind[16];
    unsigned long crc;
};

static uint32_t crc_table[256];

static int setup(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
        crc_table[i] = c;
    }
    return 0;
}

/* CRC-32 of the bytes [side, side, 3] that planes [n, 3, side, side] were normalised from. */
static uint32_t crc_of_views(const float *planes, size_t n, size_t side)
{
    uint32_t crc = 0xffffffffu;
    size_t area = side * side;
    for (size_t v = 0; v < n; v++)
        for (size_t i = 0; i < 3 * area; i++) {
            float f = planes[v * 3 * area + i % 3 * area + i / 3];
            uint8_t byte = (uint8_t)rintf(f * 127.5f + 127.5f);
            crc = crc >> 8 ^ crc_table[(crc ^ byte) & 255];
        }
    return crc ^ 0xffffffffu;
}

static uint8_t *make_page(int w, int h)
{
    uint8_t *rgb = malloc((size_t)w * (size_t)h * 3), *p = rgb;
    assert_non_null(rgb);
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            for (int c = 0; c < 3; c++)
                *p++ = (uint8_t)(7 * x + 13 * y + 50 * c + x * y % 251);
    return rgb;
}

static void check_crc(const struct line *line, const char *what, uint32_t got)
{
    if (got != line->crc)
        fail_msg("%d x %d, %s %d: %s: CRC %lu, expected %lu", line->w, line->h, line->kind, line->side, what,
                 (unsigned long)got, line->crc);
}

/* Where a white page lies on a black square. */
static void check_paste(const struct line *line)
{
    static const uint8_t black[3];
    size_t side = (size_t)line->side, n = (size_t)line->w * (size_t)line->h * 3;
    uint8_t *page = malloc(n), *square = malloc(side * side * 3);
    int box[4] = {line->side, line->side, 0, 0};
    assert_true(page && square);
    memset(page, 255, n);
    assert_int_equal(image_fit_pad(square, line->side, page, line->w, line->h, black, NULL), FATHOM_OK);
    for (int y = 0; y < line->side; y++)
        for (int x = 0; x < line->side; x++)
            if (square[((size_t)y * side + (size_t)x) * 3]) {
                box[0] = x < box[0] ? x : box[0];
                box[1] = y < box[1] ? y : box[1];
                box[2] = x >= box[2] ? x + 1 : box[2];
                box[3] = y >= box[3] ? y + 1 : box[3];
            }
    for (int i = 0; i < 4; i++)
        if (box[i] != line->box[i])
            fail_msg("%d x %d on %d: [%d, %d, %d, %d], expected [%d, %d, %d, %d]", line->w, line->h, line->side, box[0],
                     box[1], box[2], box[3], line->box[0], line->box[1], line->box[2], line->box[3]);
    free(page);
    free(square);
}

static void check_line(const struct line *line)
{
    const struct model_config ocr1 = config_ocr1_published(), ocr2 = config_ocr2_published();
    bool stretch = strcmp(line->kind, "stretch") == 0, tiles = strcmp(line->kind, "tiles") == 0;
    enum fathom_mode mode = tiles     ? FATHOM_MODE_GUNDAM
                            : stretch ? (line->side == 512 ? FATHOM_MODE_TINY : FATHOM_MODE_SMALL)
                                      : (line->side == 1024 ? FATHOM_MODE_BASE : FATHOM_MODE_LARGE);
    struct view_config config;
    struct views views;
    struct fathom_err err;
    uint8_t *rgb = make_page(line->w, line->h);
    if (mode_views(&config, line->side == 768 ? &ocr2 : &ocr1, mode, 0, &err) ||
        views_make(&views, rgb, line->w, line->h, &config, &err))
        fail_msg("%s", err.message);
    if (tiles) {
        assert_int_equal(views.tile_side, line->side);
        assert_int_equal(views.across * line->side, line->box[2]); /* the last tile ends where the grid does */
        assert_int_equal(views.down * line->side, line->box[3]);
        check_crc(line, "tiles", crc_of_views(views.local, views.n_local, views.tile_side));
    } else {
        assert_int_equal(views.n_local, 0);
        assert_int_equal(views.base_side, line->side);
        check_crc(line, "view", crc_of_views(views.global, 1, views.base_side));
        if (!stretch)
            check_paste(line);
    }
    views_free(&views);
    free(rgb);
}

static void test_table(void **state)
{
    FILE *file = fopen("tests/golden/pillow_views.txt", "r");
    struct line line;
    size_t n = 0;
    (void)state;
    assert_non_null(file);
    for (; fscanf(file, "%d %d %15s %d %d %d %d %d %lu", &line.w, &line.h, line.kind, &line.side, &line.box[0],
                  &line.box[1], &line.box[2], &line.box[3], &line.crc) == 9;
         n++)
        check_line(&line);
    fclose(file);
    assert_int_equal(n, 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table)};
    return cmocka_run_group_tests(tests, setup, NULL);
}
