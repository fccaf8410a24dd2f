/* What we write as PNG, JPEG and PDF, read back by libpng and libjpeg. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

#include "image/jpeg_write.h"
#include "image/png_write.h"
#include "writers.h"

#include <cmocka.h> /* last: it has a macro fail() */

static uint8_t *picture(int width, int height, bool grey)
{
    uint8_t *rgb = malloc((size_t)width * (size_t)height * 3);
    assert_non_null(rgb);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < 3; c++)
                rgb[(y * width + x) * 3 + c] = (uint8_t)(grey ? (x * y) % 256 : (x * (c + 1) + y * (3 - c)) * 2 % 256);
    return rgb;
}

static uint8_t *read_png(const struct strbuf *file, int width, int height)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    assert_true(png_image_begin_read_from_memory(&image, file->text, file->n));
    assert_int_equal(image.width, width);
    assert_int_equal(image.height, height);
    image.format = PNG_FORMAT_RGB;
    uint8_t *rgb = malloc(PNG_IMAGE_SIZE(image));
    assert_non_null(rgb);
    assert_true(png_image_finish_read(&image, NULL, rgb, 0, NULL));
    assert_int_equal(image.warning_or_error, 0);
    return rgb;
}

static void test_png(void **state)
{
    (void)state;
    const int sizes[][2] = {{1, 1}, {1, 300}, {300, 1}, {257, 129}, {700, 500}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int grey = 0; grey < 2; grey++) {
            int width = sizes[i][0], height = sizes[i][1];
            struct strbuf file = {0};
            uint8_t *rgb = picture(width, height, grey), *read;
            assert_int_equal(png_write(rgb, width, height, to_strbuf, &file, NULL), FATHOM_OK);
            read = read_png(&file, width, height);
            assert_memory_equal(rgb, read, (size_t)width * (size_t)height * 3);
            assert_true(!grey || rgb_is_grey(rgb, width, height));
            free(rgb);
            free(read);
            strbuf_free(&file);
        }
    const uint8_t colour[6] = {5, 5, 5, 5, 6, 5};
    assert_false(rgb_is_grey(colour, 2, 1));
    assert_true(rgb_is_grey(colour, 1, 1));
}

static uint8_t *read_jpeg(const struct strbuf *file, int width, int height)
{
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, (const unsigned char *)file->text, file->n);
    assert_int_equal(jpeg_read_header(&jpeg, TRUE), JPEG_HEADER_OK);
    jpeg_start_decompress(&jpeg);
    assert_int_equal(jpeg.output_width, width);
    assert_int_equal(jpeg.output_height, height);
    assert_int_equal(jpeg.output_components, 3);
    uint8_t *rgb = malloc((size_t)width * (size_t)height * 3);
    assert_non_null(rgb);
    while (jpeg.output_scanline < jpeg.output_height) {
        JSAMPROW row = rgb + (size_t)jpeg.output_scanline * (size_t)width * 3;
        jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
    assert_int_equal(errors.num_warnings, 0);
    jpeg_destroy_decompress(&jpeg);
    return rgb;
}

/* Every pixel within a few steps, the mean much closer. */
static void check_near(const uint8_t *a, const uint8_t *b, size_t n, int most)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        int difference = abs(a[i] - b[i]);
        sum += difference;
        if (difference > most)
            fail_msg("byte %zu is %d instead of %d", i, b[i], a[i]);
    }
    assert_true(sum / (double)n < most / 4.0);
}

static void test_jpeg(void **state)
{
    (void)state;
    const int sizes[][2] = {{1, 1}, {7, 9}, {8, 8}, {65, 33}, {200, 130}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int width = sizes[i][0], height = sizes[i][1];
        struct strbuf file = {0};
        uint8_t *rgb = malloc((size_t)width * (size_t)height * 3), *read;
        for (int p = 0; p < width * height; p++) {
            rgb[3 * p] = (uint8_t)(p % width * 255 / width);
            rgb[3 * p + 1] = (uint8_t)(p / width * 255 / height);
            rgb[3 * p + 2] = (uint8_t)(255 - p % width * 100 / width);
        }
        assert_int_equal(jpeg_write(rgb, (size_t)width * 3, width, height, to_strbuf, &file, NULL), FATHOM_OK);
        read = read_jpeg(&file, width, height);
        check_near(rgb, read, (size_t)width * (size_t)height * 3, 16);
        free(rgb);
        free(read);
        strbuf_free(&file);
    }
    /* noise uses every code */
    struct strbuf file = {0};
    uint8_t *rgb = malloc(256 * 256 * 3), *read;
    uint32_t random = 1;
    for (int i = 0; i < 256 * 256 * 3; i++)
        rgb[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24) > 127 ? 255 : 0;
    assert_int_equal(jpeg_write(rgb, 256 * 3, 256, 256, to_strbuf, &file, NULL), FATHOM_OK);
    read = read_jpeg(&file, 256, 256);
    check_near(rgb, read, 256 * 256 * 3, 64);
    free(rgb);
    free(read);
    strbuf_free(&file);
    struct fathom_err err;
    assert_int_equal(jpeg_write((const uint8_t *)"", 0, 65536, 1, to_strbuf, &file, &err), FATHOM_ELIMIT);
}

/* A figure is what its boxes surround, to the edge of the page at most. */
static void test_figures(void **state)
{
    (void)state;
    enum { WIDTH = 999, HEIGHT = 1998 };
    uint8_t *rgb = malloc(WIDTH * HEIGHT * 3);
    assert_non_null(rgb);
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        rgb[3 * i] = (uint8_t)(i % WIDTH / 4);
        rgb[3 * i + 1] = (uint8_t)(i / WIDTH / 8);
        rgb[3 * i + 2] = 77;
    }
    struct fathom_page *page =
        make_page(ITEM("text", "[[0,0,9,9]]") ITEM("image", "[[100,100,200,150],[150,120,300,200]]")
                      ITEM("image", "[[999,999,999,999]]") ITEM("image", "none"),
                  1, 1, NULL);
    assert_non_null(page);
    struct fathom_err err;
    struct strbuf file = {0};
    assert_int_equal(fathom_page_figure_jpeg(page, 0, to_strbuf, &file, &err), FATHOM_EINVAL);
    page->rgb = rgb;
    assert_int_equal(fathom_page_figures(page), 3);
    assert_int_equal(fathom_page_figure_jpeg(page, 0, to_strbuf, &file, &err), FATHOM_OK);
    uint8_t *read = read_jpeg(&file, 200, 200);
    for (int y = 0; y < 200; y++)
        check_near(rgb + ((200 + y) * WIDTH + 100) * 3, read + y * 200 * 3, 200 * 3, 16);
    free(read);
    strbuf_free(&file);
    assert_int_equal(fathom_page_figure_jpeg(page, 1, to_strbuf, &file, &err), FATHOM_OK);
    free(read_jpeg(&file, 1, 1));
    strbuf_free(&file);
    assert_int_equal(fathom_page_figure_jpeg(page, 2, to_strbuf, &file, &err), FATHOM_EINVAL);
    assert_string_equal(err.message, "a figure of page 1 has no box");
    assert_int_equal(fathom_page_figure_jpeg(page, 3, to_strbuf, &file, &err), FATHOM_EINVAL);
    assert_string_equal(err.message, "page 1 has no figure 3");

    /* The overlay: frames in the kinds' colours where the boxes are, all else as it was. */
    assert_int_equal(fathom_page_overlay_png(page, to_strbuf, &file, &err), FATHOM_OK);
    read = read_png(&file, WIDTH, HEIGHT);
    const uint8_t green[3] = {0x1a, 0x7f, 0x37};
    assert_memory_equal(read + (300 * WIDTH + 100) * 3, green, 3); /* the left edge of the first box */
    assert_memory_equal(read + (350 * WIDTH + 300) * 3, green, 3); /* the right edge of the second   */
    assert_memory_equal(read + (400 * WIDTH + 250) * 3, green, 3);
    assert_memory_equal(read + (260 * WIDTH + 130) * 3, rgb + (260 * WIDTH + 130) * 3, 3);
    assert_memory_equal(read + 900 * WIDTH * 3, rgb + 900 * WIDTH * 3, 900 * WIDTH * 3);
    free(read);
    strbuf_free(&file);
    fathom_page_free(page);
    free(rgb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_png),
        cmocka_unit_test(test_jpeg),
        cmocka_unit_test(test_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
