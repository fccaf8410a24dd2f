#include "document/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ITEM(label, list) "<|ref|>" label "<|/ref|><|det|>" list "<|/det|>"

static struct layout parse(const char *raw, int width, int height)
{
    struct layout l;
    struct fathom_err err;
    if (layout_parse(&l, raw, width, height, &err))
        fail_msg("%s", err.message);
    return l;
}

static void check_block(const struct fathom_block *b, const char *label, size_t n_boxes, const char *text)
{
    assert_string_equal(b->label, label);
    assert_int_equal(b->n_boxes, n_boxes);
    assert_true(n_boxes == 0 || b->boxes);
    assert_string_equal(b->text, text);
}

static void check_box(const struct fathom_box *b, int x0, int y0, int x1, int y1)
{
    assert_int_equal(b->x0, x0);
    assert_int_equal(b->y0, y0);
    assert_int_equal(b->x1, x1);
    assert_int_equal(b->y1, y1);
}

static void test_page(void **state)
{
    (void)state;
    struct layout l = parse(
        ITEM("title", "[[330, 198, 559, 230]]") "\n# R\n\n" ITEM("text", "[[0,0,999,999]]") "\nOne\n\nTwo\n\n" ITEM(
            "image", "[[1, 2, 3, 4], [500, 500, 600, 700]]") "\n",
        1000, 2000);
    assert_int_equal(l.n_blocks, 3);
    check_block(&l.blocks[0], "title", 1, "# R");
    check_box(&l.blocks[0].boxes[0], 330, 396, 559, 460);
    check_block(&l.blocks[1], "text", 1, "One\n\nTwo");
    check_box(&l.blocks[1].boxes[0], 0, 0, 1000, 2000);
    check_block(&l.blocks[2], "image", 2, "");
    check_box(&l.blocks[2].boxes[0], 1, 4, 3, 8);
    check_box(&l.blocks[2].boxes[1], 500, 1001, 600, 1401);
    layout_free(&l);
    layout_free(&l);
}

/* px = trunc(x / 999 * W): 998 on 999 pixels is 998, and 1 on 998 pixels is 0. */
static void test_truncates(void **state)
{
    (void)state;
    struct layout l = parse(ITEM("a", "[[1, 333, 998, 666]]"), 998, 999);
    check_box(&l.blocks[0].boxes[0], 0, 333, 997, 666);
    layout_free(&l);
    l = parse(ITEM("a", "[[999, 999, 999, 999]]"), 1, 20000);
    check_box(&l.blocks[0].boxes[0], 1, 20000, 1, 20000);
    layout_free(&l);
    l = parse(ITEM("a", "[[1, 1, 2, 2]]"), 0, 0);
    check_box(&l.blocks[0].boxes[0], 0, 0, 0, 0);
    layout_free(&l);
}

static void test_strange_coordinates(void **state)
{
    (void)state;
    struct layout l = parse(ITEM("a", "[[-5, 1200, 99999999999999999999999999, 1e999], [600, 700, 100, 200],"
                                      "[0.5, 1.5e2, 99.9, +.1e+3], [1e-999, 0e999, -0, 1E1], [1000,1000,2000,2000]]"),
                            999, 999);
    assert_int_equal(l.n_blocks, 1);
    assert_int_equal(l.blocks[0].n_boxes, 5);
    check_box(&l.blocks[0].boxes[0], 0, 999, 999, 999);
    check_box(&l.blocks[0].boxes[1], 100, 200, 600, 700);
    check_box(&l.blocks[0].boxes[2], 0, 100, 99, 150);
    check_box(&l.blocks[0].boxes[3], 0, 0, 0, 10);
    check_box(&l.blocks[0].boxes[4], 999, 999, 999, 999);
    layout_free(&l);
}

static void test_lists(void **state)
{
    (void)state;
    const struct {
        const char *list;
        size_t n_boxes;
    } cases[] = {
        {"[[1,2,3,4]]", 1},
        {" [ [ 1 , 2 ,\n3,4 ] ] ", 1},
        {"[1,2,3,4]", 1},
        {"[[[1,2,3,4],[1,2,3,4]],[[1,2,3,4]]]", 3},
        {"[[1,2,3,4],]", 1},
        {"[[1,2,3,4,],[5,6,7,8]]", 2},
        {"[]", 0},
        {"[[]]", 0},
        {"", 0},
        {"   ", 0},
        {"7", 0},
        {"1,2,3,4", 0},
        {"[[1,2,3]]", 0},
        {"[[1,2,3,4,5]]", 0},
        {"[[1,2,3,4],[1,2,3]]", 0},
        {"[[1,2,3,4]", 0},
        {"[[1,2,3,4]]]", 0},
        {"[[1,2,3,4]] x", 0},
        {"[[1,2,3,4]][[1,2,3,4]]", 0},
        {"[[1,2,3,4]], [[1,2,3,4]]", 0},
        {"[[1 2 3 4]]", 0},
        {"[[1,,2,3,4]]", 0},
        {"[,[1,2,3,4]]", 0},
        {"[[1,2,3,4][1,2,3,4]]", 0},
        {"[[1,2,[3],4]]", 0},
        {"[[1,2,3,4],5]", 0},
        {"[5,[1,2,3,4]]", 0},
        {"[[1,2,3,x]]", 0},
        {"[[1,2,3,-]]", 0},
        {"[[1,2,3,.]]", 0},
        {"[[1,2,3,1e]]", 0},
        {"[[1,2,3,1e+]]", 0},
        {"[[nan,2,3,4]]", 0},
        {"[[inf,2,3,4]]", 0},
        {"[[0x10,2,3,4]]", 0},
        {"[[\"1\",2,3,4]]", 0},
        {"(1,2,3,4)", 0},
        {"__import__('os')", 0},
        {"]", 0},
        {"]]]]", 0},
        {",", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char raw[256];
        snprintf(raw, sizeof raw, ITEM("label", "%s") "text", cases[i].list);
        struct layout l = parse(raw, 999, 999);
        assert_int_equal(l.n_blocks, 1);
        if (l.blocks[0].n_boxes != cases[i].n_boxes)
            fail_msg("'%s' has %zu boxes, expected %zu", cases[i].list, l.blocks[0].n_boxes, cases[i].n_boxes);
        check_block(&l.blocks[0], "label", cases[i].n_boxes, "text");
        layout_free(&l);
    }
}

static void test_text_outside_of_tags(void **state)
{
    (void)state;
    struct layout l = parse("", 10, 10);
    assert_int_equal(l.n_blocks, 0);
    layout_free(&l);
    l = parse(" \n\t\n", 10, 10);
    assert_int_equal(l.n_blocks, 0);
    layout_free(&l);
    l = parse("\n  plain\ntext \n", 10, 10);
    assert_int_equal(l.n_blocks, 1);
    check_block(&l.blocks[0], "", 0, "  plain\ntext");
    layout_free(&l);
    l = parse("before\n" ITEM("a", "[]") "after", 10, 10);
    assert_int_equal(l.n_blocks, 2);
    check_block(&l.blocks[0], "", 0, "before");
    check_block(&l.blocks[1], "a", 0, "after");
    layout_free(&l);
}

static void check_tail(const char *tail, bool kept)
{
    char raw[256], want[256], *markdown;
    snprintf(raw, sizeof raw, ITEM("a", "[[1,2,3,4]]") "x%s", tail);
    snprintf(want, sizeof want, "x%s", kept ? tail : "");
    struct layout l = parse(raw, 10, 10);
    assert_int_equal(l.n_blocks, 1);
    assert_string_equal(l.blocks[0].text, want);
    layout_free(&l);
    assert_int_equal(layout_markdown(raw, &markdown, NULL), FATHOM_OK);
    assert_string_equal(markdown, want);
    free(markdown);
}

/* What the token limit left of a tag is no text; a tag that is wrong is. */
static void test_broken_tags(void **state)
{
    (void)state;
    const char *const cut[] = {
        "<|ref|>",
        "<|ref|>ti",
        "<|ref|>label<|/ref|>",
        "<|ref|>a < b and two words<|/ref|>",
        "<|ref|>label<|/ref|><|det|>",
        "<|ref|>label<|/ref|><|det|>[[1,",
        "<|ref|>label<|/ref|><|det|>[[1, 2, 3, 4], [5, 6, 7, 8]]",
        "<|ref|>label<|/ref|><|det|>[[1, 2, 3, 4]]<|/de",
    };
    const char *const wrong[] = {
        "<|ref",
        "<|det|>[[1,",
        "<|ref|>label\nand more",
        "<|ref|>label<|/ref|> <|det|>[[1,2,3,4]]<|/det|>",
        "<|ref|>label<|/ref|> text",
        "<|ref|>label<|/ref|><|det|>none",
        "<|ref|>label<|/ref|><|det|>[[1,2,3,4]]<|/ref|>",
        "<|/det|><|/ref|><|det|>",
        "<|ref|><|det|>[[1,2,3,4]]<|/det|>",
    };
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++)
        check_tail(cut[i], false);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        check_tail(wrong[i], true);
    struct layout only = parse("<|ref|>title<|/ref|><|det|>[[1", 10, 10);
    assert_int_equal(only.n_blocks, 0);
    layout_free(&only);
    /* As the reference's expression has it: from the first opening tag to the first complete end. */
    struct layout l = parse("<|ref|>one<|/ref|> two <|ref|>three<|/ref|><|det|>[[1,2,3,4]]<|/det|>", 999, 999);
    assert_int_equal(l.n_blocks, 1);
    check_block(&l.blocks[0], "one<|/ref|> two <|ref|>three", 1, "");
    layout_free(&l);
}

static void test_large_input_takes_linear_time(void **state)
{
    (void)state;
    const char *const parts[] = {"<|ref|>", "<|ref|>a<|/ref|><|det|>", ITEM("image", "[[1,2,3,4]]"), "[[[[[[[",
                                 "<|/det|>"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t n = strlen(parts[i]), times = (4u << 20) / n;
        char *raw = malloc(n * times + 1), *markdown;
        assert_non_null(raw);
        for (size_t k = 0; k < times; k++)
            memcpy(raw + k * n, parts[i], n);
        raw[n * times] = 0;
        struct layout l = parse(raw, 999, 999);
        assert_int_equal(l.n_blocks, i == 2 ? times : 1);
        layout_free(&l);
        assert_int_equal(layout_markdown(raw, &markdown, NULL), FATHOM_OK);
        assert_true(strlen(markdown) <= n * times);
        free(markdown);
        free(raw);
    }
    /* one item with 4 MiB of brackets */
    size_t n = 4u << 20;
    char *raw = malloc(n + 64);
    assert_non_null(raw);
    int head = sprintf(raw, "<|ref|>a<|/ref|><|det|>");
    memset(raw + head, '[', n);
    strcpy(raw + head + n, "<|/det|>");
    struct layout l = parse(raw, 999, 999);
    assert_int_equal(l.n_blocks, 1);
    check_block(&l.blocks[0], "a", 0, "");
    layout_free(&l);
    free(raw);
}

static void test_markdown(void **state)
{
    (void)state;
    const struct {
        const char *raw, *markdown;
    } cases[] = {
        {"", ""},
        {"plain \\coloneqq text", "plain \\coloneqq text"}, /* spelled out only where an item was taken away */
        {" \n plain\n\n", "plain"},
        {"text<｜end▁of▁sentence｜>", "text"},
        {"text\n<｜end▁of▁sentence｜>", "text"},
        {ITEM("title", "[[1,2,3,4]]") "\n# R\n\n" ITEM("text", "[[1,2,3,4]]") "\nOne", "# R\n\nOne"},
        {"a\n\n\n\n\nb\n\nc\nd", "a\n\nb\n\nc\nd"},
        {ITEM("image", "[[1,2,3,4]]") "\nA\n" ITEM("text", "[]") "B\n" ITEM("image", "[[5,6,7,8]]"),
         "![](images/0.jpg)\n\nA\nB\n![](images/1.jpg)\n"},
        /* equal items share the first one's number, and still count */
        {ITEM("image", "[]") ITEM("image", "[]") ITEM("image", "[1]") ITEM("image", "[]") ITEM("image", "[2]"),
         "![](images/0.jpg)\n![](images/0.jpg)\n![](images/2.jpg)\n![](images/0.jpg)\n![](images/4.jpg)\n"},
        {"a \\coloneqq b" ITEM("text", "[]") " \\eqqcolon c", "a := b =: c"},
        {"a \\coloneqq b" ITEM("image", "[]"), "a \\coloneqq b![](images/0.jpg)\n"},
        {"\\coloneqqcolon\\eqqcoloneqq\\coloneq" ITEM("t", ""), ":=colon=:eqq\\coloneq"},
        {ITEM("image ", "[]") "x", "x"},
        {ITEM("image<|/ref|> x", "[]") "x", "![](images/0.jpg)\nx"},
        {ITEM("an image", "[]") "x", "x"},
        {ITEM("a<|ref|>image<|/ref|>", "[]"), "![](images/0.jpg)\n"},
        {ITEM("<|ref|>image", "[]"), "![](images/0.jpg)\n"},
        {"a" ITEM("t", "broken [") "b<|ref|>tail", "ab"},
        {ITEM("", ""), ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *markdown;
        assert_int_equal(layout_markdown(cases[i].raw, &markdown, NULL), FATHOM_OK);
        assert_string_equal(markdown, cases[i].markdown);
        free(markdown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page),
        cmocka_unit_test(test_truncates),
        cmocka_unit_test(test_strange_coordinates),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_text_outside_of_tags),
        cmocka_unit_test(test_broken_tags),
        cmocka_unit_test(test_large_input_takes_linear_time),
        cmocka_unit_test(test_markdown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
