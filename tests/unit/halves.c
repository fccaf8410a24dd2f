/* A page in two halves: where it is cut, and its boxes put together again. */
#include "document/halves.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A page of one colour, with stripes of noise where text[i] to text[i + 1] says. The caller frees it. */
static uint8_t *make_page(int w, int h, uint8_t paper, const int *text, size_t n_text)
{
    uint8_t *rgb = malloc((size_t)w * (size_t)h * 3);
    uint32_t noise = 1;
    assert_non_null(rgb);
    memset(rgb, paper, (size_t)w * (size_t)h * 3);
    for (size_t i = 0; i < n_text; i += 2)
        for (size_t k = (size_t)text[i] * (size_t)w * 3; k < (size_t)text[i + 1] * (size_t)w * 3; k++)
            rgb[k] = (uint8_t)((noise = noise * 1664525 + 1013904223) >> 24);
    return rgb;
}

static int cut(int w, int h, uint8_t paper, const int *text, size_t n_text)
{
    uint8_t *rgb = make_page(w, h, paper, text, n_text);
    int row = halves_row(rgb, w, h);
    free(rgb);
    return row;
}

static void test_row(void **state)
{
    (void)state;
    assert_int_equal(cut(90, 400, 255, NULL, 0), 200);
    for (int paper = 0; paper < 256; paper += 51) { /* dark pages too */
        static const int lines[] = {0, 190, 205, 400};
        int row = cut(90, 400, (uint8_t)paper, lines, 4);
        assert_in_range(row, 192, 203);
    }
    static const int near_end[] = {0, 232, 236, 400}, beyond[] = {0, 300, 330, 400},
                     gaps[] = {0, 178, 186, 208, 216, 400};
    assert_in_range(cut(90, 400, 255, near_end, 4), 233, 235);
    assert_in_range(cut(90, 400, 255, beyond, 4), 160, 240); /* a gap too far down is not used */
    assert_in_range(cut(90, 400, 255, gaps, 6), 210, 214);   /* the nearer one */
    static const int full[] = {0, 400};
    assert_in_range(cut(90, 400, 255, full, 2), 160, 240);
}

static void test_small(void **state)
{
    (void)state;
    for (int h = 1; h < 70; h++) {
        int row = cut(1, h, 255, NULL, 0);
        if (h < 64)
            assert_int_equal(row, 0);
        else
            assert_true(row > 0 && row < h);
    }
    for (int h = 64; h < 3000; h += 97) {
        static const int text[] = {0, 60};
        int row = cut(3, h, 9, text, 2);
        assert_true(row > 0 && row < h);
    }
}

static void check_join(const char *upper, const char *lower, int row, int height, const char *expected)
{
    struct strbuf out = {0};
    assert_int_equal(halves_join(&out, upper, lower, row, height, NULL), FATHOM_OK);
    assert_string_equal(strbuf_text(&out), expected);
    strbuf_free(&out);
}

#define REF(label, boxes) "<|ref|>" label "<|/ref|><|det|>" boxes "<|/det|>"

static void test_boxes(void **state)
{
    (void)state;
    check_join(REF("title", "[[10, 0, 500, 999]]") "\n# A\n\n", "\n" REF("text", "[[0, 0, 999, 999]]") "\nB", 500, 1000,
               REF("title", "[[10, 0, 500, 500]]") "\n# A\n\n" REF("text", "[[0, 500, 999, 999]]") "\nB");
    check_join("", REF("text", "[[1, 333, 2, 666], [3, 0, 4, 999]]"), 300, 900,
               REF("text", "[[1, 555, 2, 777], [3, 333, 4, 999]]"));
    check_join(REF("text", "[[1, 333, 2, 666]]"), " \n", 300, 900, REF("text", "[[1, 111, 2, 222]]"));
    /* numbers of other forms become whole ones, what is outside its half ends with it, nested lists are one */
    check_join(REF("x", "[[1.5, -7, 2e1, 5000]]"), REF("x", "[[[ -3,-1e9,1e300,99999 ]],[[1,2,3,4]]]"), 500, 1000,
               REF("x", "[[2, 0, 20, 500]]") "\n\n" REF("x", "[[0, 500, 999, 999], [1, 500, 3, 502]]"));
    check_join(REF("x", "[1, 2, 3, 4]"), "", 500, 1000, REF("x", "[[1, 1, 3, 2]]"));
}

static void test_texts(void **state)
{
    (void)state;
    check_join("a\n\n\n", "\n\nb\n", 1, 2, "a\n\nb\n");
    check_join("a", "", 1, 2, "a");
    check_join("", "b", 1, 2, "b");
    check_join("", "", 1, 2, "");
    /* what is no list of boxes stays as it is, so does a tag at the end of the page */
    check_join(REF("x", "[[1, 2, 3]]") "a", REF("x", "sorry") "<|ref|>te", 1, 2,
               REF("x", "[[1, 2, 3]]") "a\n\n" REF("x", "sorry") "<|ref|>te");
    /* a tag that the upper half did not end must not swallow the lower half's first */
    check_join("a\n<|ref|>te", REF("y", "[[1, 0, 3, 4]]") "b", 500, 1000, "a\n\n" REF("y", "[[1, 500, 3, 502]]") "b");
    check_join(REF("x", "[[0, 0, 9, 9]]") "a<|ref|>te<|/ref|><|det|>[[1,", REF("y", "[[0, 0, 9, 9]]"), 500, 1000,
               REF("x", "[[0, 0, 9, 4]]") "a\n\n" REF("y", "[[0, 500, 9, 504]]"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_row),
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_boxes),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
