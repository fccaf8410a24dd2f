/* Whatever a model may say, each format is a document of its kind; and no word of plain text is lost or moved. */
#include "writers.h"
#include "document_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint32_t next(uint32_t *random, uint32_t below)
{
    *random = *random * 1664525 + 1013904223;
    return (*random >> 8) % below;
}

static const char *const pieces[] = {
    ITEM("text", "[[1,2,300,400]]"),
    ITEM("image", "[[0,0,999,999],[1,1,1,1]]"),
    ITEM("table", "broken"),
    "<|ref|>",
    "<|/ref|>",
    "<|det|>",
    "<|/det|>",
    "<table>",
    "</table>",
    "<thead>",
    "<tr>",
    "</tr>",
    "<td>",
    "<td rowspan=\"2\" colspan='7'>",
    "</td>",
    "<th ",
    "<b>",
    "</b>",
    "<i>",
    "</i>",
    "<sup>",
    "</sub>",
    "<br/>",
    "<center>",
    "<script>",
    "<!--",
    "-->",
    "]]>",
    "<![CDATA[",
    "&amp;",
    "&#x0;",
    "&#65",
    "&",
    "\"",
    "'",
    "**",
    "*",
    "***",
    "`",
    "```\n",
    "\\(",
    "\\)",
    "\\[",
    "\\]",
    "$",
    "$$",
    "# ",
    "- ",
    "  - ",
    "1. ",
    "\n",
    "\n\n",
    " ",
    "\t",
    "\r",
    "\\",
    "word",
    "中",
    "ب",
    "שלום",
    "😀",
    "\x01",
    "\x7f",
    "\xff",
    "\xed\xa0\x80",
    "\xef\xbf\xbe",
    "\xc2\x85",
    "\xe2\x80\xa8",
    "\xf4\x8f\xbf\xbf",
    "\xc0\x80",
};

static char *random_text(uint32_t *random)
{
    struct strbuf s = {0};
    strbuf_adds(&s, "");
    for (uint32_t n = next(random, 60); n > 0; n--)
        strbuf_adds(&s, pieces[next(random, sizeof pieces / sizeof *pieces)]);
    assert_false(s.failed);
    return s.text;
}

static void test_any_output(void **state)
{
    (void)state;
    static const uint8_t pixels[999 * 1998 * 3];
    uint32_t random = 1;
    for (int i = 0; i < 1000; i++) {
        char *raw = random_text(&random), *name = random_text(&random);
        for (int format = FATHOM_MARKDOWN; format <= FATHOM_SEARCHABLE_PDF; format++) {
            if (format == FATHOM_SEARCHABLE_PDF && i % 50)
                continue;
            struct fathom_page *pages[] = {make_page(raw, 1, 3, NULL), make_page("", 2, 3, name),
                                           make_page(raw, 3, 3, NULL)};
            for (size_t k = 0; k < 3; k++) {
                assert_non_null(pages[k]);
                pages[k]->rgb = format == FATHOM_SEARCHABLE_PDF ? pixels : NULL;
            }
            struct strbuf out = {0};
            struct fathom_writer_options options = {.file = name, .model = name, .figures = i % 2 ? name : NULL};
            size_t n = format == FATHOM_JSON_LINES || format == FATHOM_STATS ? 1 : 3;
            for (size_t k = n; k < 3; k++)
                fathom_page_free(pages[k]);
            assert_int_equal(write_pages(&out, (enum fathom_format)format, &options, pages, n, NULL), FATHOM_OK);
            if (!is_document((enum fathom_format)format, &out))
                fail_msg("format %d of '%s' named '%s' is broken:\n%s", format, raw, name, strbuf_text(&out));
            strbuf_free(&out);
        }
        free(raw);
        free(name);
    }
}

/* Words of letters, with marks between them that vanish or stay: all of them stand in the text in their order. */
static void test_no_word_is_lost(void **state)
{
    (void)state;
    static const char *const between[] = {" ",
                                          "\n",
                                          "\n\n",
                                          " **",
                                          "** ",
                                          "\n- ",
                                          "\n# ",
                                          " <b>",
                                          "</i> ",
                                          " `",
                                          "\n<table><tr><td>",
                                          "</td><td>",
                                          "</td></tr></table>\n",
                                          " $ ",
                                          " * ",
                                          " < "};
    uint32_t random = 7;
    for (int i = 0; i < 2000; i++) {
        struct strbuf raw = {0}, out = {0};
        uint32_t n = 1 + next(&random, 40);
        for (uint32_t k = 0; k < n; k++)
            strbuf_addf(&raw, "w%03ux%s", k, between[next(&random, sizeof between / sizeof *between)]);
        struct fathom_page *page = make_page(raw.text, 1, 1, NULL);
        assert_int_equal(write_pages(&out, FATHOM_TEXT, NULL, &page, 1, NULL), FATHOM_OK);
        const char *at = strbuf_text(&out);
        for (uint32_t k = 0; k < n; k++) {
            char word[16];
            snprintf(word, sizeof word, "w%03ux", k);
            if (!(at = strstr(at, word)))
                fail_msg("'%s' of '%s' is lost in '%s'", word, raw.text, strbuf_text(&out));
        }
        strbuf_free(&raw);
        strbuf_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_output),
        cmocka_unit_test(test_no_word_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
