/* The text that the program streams while a page is generated is the beginning of the page's Markdown, however the output
 * is cut into pieces; what was held back completes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "document/layout.h"
#include "stream.h"

#include <cmocka.h> /* last: it has a macro fail() */

#define ITEM(label, box) "<|ref|>" label "<|/ref|><|det|>[[" box "]]<|/det|>"

static const char *const pages[] = {
    "",
    " \n",
    "plain",
    "  two words \n\n and more \t\n",
    "\u3000\u00a0wide \u2003spaces\u3000",
    "日本語のテキスト\n",
    ITEM("title", "1, 2, 3, 4") "\n# A title\n\n" ITEM("text", "5, 6, 7, 8") "\nText of it.\n",
    ITEM("image", "1, 2, 3, 4") "\n\n" ITEM("image", "5, 6, 7, 8") "\nA caption.",
    "a\n\n\n\nb\n \n\n\n" ITEM("text", "1, 2, 3, 4") "\n\n\nc",
    "before " ITEM("text", "1, 2, 3, 4") ITEM("image", "1, 2, 3, 4") " after",
    /* the same item twice: both become the picture of the first */
    ITEM("image", "1, 2, 3, 4") "\n" ITEM("text", "1, 2, 3, 4")
        ITEM("image", "1, 2, 3, 4") "\n" ITEM("image", "9, 9, 9, 9") "\nend",
    /* cut off within a tag, at each of its parts */
    "text <|re",
    "text <|ref|>title",
    "text <|ref|>title<|/ref|>",
    "text <|ref|>title<|/ref|><|det|>[[1, 2",
    /* tags that are none, and one within another */
    "a < b <| c <|ref| d <|ref <|/ref|> <|det|> <|/det|> e",
    "<|ref|>one<|/ref|> no boxes " ITEM("image", "1, 2, 3, 4") " end",
    "<|ref|>one <|ref|>two<|/ref|><|det|>[]<|/det|> end",
    "x<|r" ITEM("text", "1, 2, 3, 4") "ef|>y",
    /* spelled out only where there are items */
    "\\coloneqq and \\eqqcolon",
    "\\coloneqq, " ITEM("text", "1, 2, 3, 4") " \\eqqcolon \\colon \\",
    ITEM("text", "1, 2, 3, 4") "a \\coloneqq b \\eqqcolon c",
    ITEM("image", "1, 2, 3, 4") "a \\coloneqq b",
    "a back\\slash and \\co",
};

/* Pushes raw in pieces of the given number of characters; the text handed on plus the rest, owned by the caller. */
static char *stream_all(const char *raw, size_t piece, const char *markdown, size_t *n_early)
{
    struct stream s = {0};
    struct text all = {0};
    for (const char *at = raw; *at;) {
        size_t n = 0, n_certain;
        for (size_t i = 0; i < piece && at[n]; i++)
            do
                n++;
            while (((unsigned char)at[n] & 0xc0) == 0x80);
        const char *certain = stream_push(&s, at, n, &n_certain);
        text_add(&all, certain, n_certain);
        at += n;
    }
    const char *rest;
    assert_int_equal(stream_finish(&s, markdown, &rest), STREAM_MORE);
    *n_early = all.n;
    text_add(&all, rest, strlen(rest));
    stream_free(&s);
    return all.bytes;
}

static void pieces_give_the_pages_markdown(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        struct fathom_err err;
        char *markdown;
        assert_int_equal(layout_markdown(pages[i], &markdown, &err), FATHOM_OK);
        for (size_t piece = 1; piece <= strlen(pages[i]) + 1; piece++) {
            size_t n_early;
            char *streamed = stream_all(pages[i], piece, markdown, &n_early);
            assert_string_equal(streamed, markdown);
            free(streamed);
        }
        free(markdown);
    }
}

/* Ordinary text waits for nothing, and an item only for its end. */
static void text_is_handed_on_at_once(void **state)
{
    (void)state;
    struct stream s = {0};
    size_t n;
    stream_push(&s, "A", 1, &n);
    assert_int_equal(n, 1);
    assert_string_equal(stream_push(&s, "b ", 2, &n), "b");
    assert_string_equal(stream_push(&s, "c", 1, &n), " c");
    static const char item[] = ITEM("text", "1, 2, 3, 4");
    stream_push(&s, item, sizeof item - 2, &n);
    assert_int_equal(n, 0);
    assert_string_equal(stream_push(&s, ">d", 2, &n), "d");
    stream_free(&s);
}

static void raw_text_is_left_alone(void **state)
{
    (void)state;
    struct stream s = {.raw = true};
    size_t n;
    const char *rest;
    assert_string_equal(stream_push(&s, " <|ref|>a \n", 11, &n), " <|ref|>a \n");
    assert_int_equal(stream_finish(&s, " <|ref|>a \nb", &rest), STREAM_MORE);
    assert_string_equal(rest, "b");
    stream_free(&s);
}

static void a_cut_and_a_revision_are_told_apart(void **state)
{
    (void)state;
    struct stream s = {0};
    size_t n;
    const char *rest;
    stream_push(&s, "again again again", 17, &n);
    assert_int_equal(stream_finish(&s, "again again", &rest), STREAM_LESS);
    assert_int_equal(stream_finish(&s, "quite another", &rest), STREAM_REVISED);
    stream_reset(&s);
    assert_string_equal(stream_push(&s, "next", 4, &n), "next");
    stream_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_give_the_pages_markdown),
        cmocka_unit_test(text_is_handed_on_at_once),
        cmocka_unit_test(raw_text_is_left_alone),
        cmocka_unit_test(a_cut_and_a_revision_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
