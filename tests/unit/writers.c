/* What each format makes of a page, character by character; and writing itself: order, failures, memory. */
#include "writers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document/kind.h"

#include <cmocka.h>

#define PAGE                                                                                                           \
    ITEM("title", "[[100, 50, 500, 90]]")                                                                              \
    "\n# A *fine* title\n\n" ITEM("text", "[[100, 100, 900, 200]]") "\nOne & **two** <three>.\n\n" ITEM(               \
        "image", "[[1, 2, 3, 4], [5, 6, 7, 8]]") "\n\n" ITEM("table", "[[0,0,999,999]]") "\n<table><tr><td>a</"        \
                                                                                         "td><td>b</td></tr><tr><td "  \
                                                                                         "colspan=\"2\">c\td</td></"   \
                                                                                         "tr></table>\n<|ref|>ti"

static void check(enum fathom_format format, const struct fathom_writer_options *options, struct fathom_page **pages,
                  size_t n, const char *want)
{
    struct strbuf out = {0};
    struct fathom_err err;
    if (write_pages(&out, format, options, pages, n, &err))
        fail_msg("%s", err.message);
    assert_string_equal(strbuf_text(&out), want);
    strbuf_free(&out);
}

static void check_one(enum fathom_format format, const char *raw, const char *want)
{
    struct fathom_page *page = make_page(raw, 1, 1, NULL);
    check(format, NULL, &page, 1, want);
}

static void test_markdown(void **state)
{
    (void)state;
    check_one(FATHOM_MARKDOWN, PAGE,
              "# A *fine* title\n\nOne & **two** <three>.\n\n![](images/0.jpg)\n\n"
              "<table><tr><td>a</td><td>b</td></tr><tr><td colspan=\"2\">c\td</td></tr></table>\n");
    check_one(FATHOM_MARKDOWN, "", "\n");
    struct fathom_page *pages[] = {make_page(ITEM("image", "[[1,2,3,4]]"), 9, 12, NULL),
                                   make_page("", 10, 12, "bad --> data\n-"), make_page("x", 12, 12, NULL)};
    check(FATHOM_MARKDOWN, &(struct fathom_writer_options){.figures = "a (b)\xff.images/"}, pages, 3,
          "![](a%20%28b%29%FF.images/9_0.jpg)\n\n<!-- page 10 failed: bad - -&gt; data?-  -->\n\nx\n");
}

static void test_text(void **state)
{
    (void)state;
    check_one(FATHOM_TEXT, PAGE, "A fine title\n\nOne & two <three>.\n\na\tb\nc d\n");
    check_one(FATHOM_TEXT, "", "");
    check_one(FATHOM_TEXT, "a\f\x1b[31mb\x7f\xc2\x85\tc", "a  [31mb  \tc\n");
    check_one(FATHOM_TEXT, "- one\n  more\n\n- two\n  - three\n12. four\n\nx\n\n\n\ny",
              "- one\n  more\n- two\n  - three\n12. four\n\nx\n\ny\n");
    check_one(FATHOM_TEXT, "```c\nint *a, *b;\n```\n### Three ###", "int *a, *b;\n\nThree ###\n");
    struct fathom_page *pages[] = {make_page("x", 1, 3, NULL), make_page("", 2, 3, "lost"), make_page("", 3, 3, NULL)};
    check(FATHOM_TEXT, NULL, pages, 3, "x\n\f[page 2 failed: lost]\n\f");
}

static void test_marks_in_a_line(void **state)
{
    (void)state;
    const struct {
        const char *text, *plain;
    } cases[] = {
        {"**a** *b* ***c*** x", "a b c x"},
        {"2 * 3 * 4, a*, *b", "2 * 3 * 4, a*, *b"},
        {"**open, * and ** lone", "**open, * and ** lone"},
        {"\\*no\\* \\#1 a\\_b \\d", "*no* #1 a_b \\d"},
        {"\\(a*b*c\\) and \\[x**2**\\] $a*b*$ $$c*d*e$$", "\\(a*b*c\\) and \\[x**2**\\] $a*b*$ $$c*d*e$$"},
        {"$5 and *$6*", "$5 and $6"},
        {"`*x*` and `", "*x* and `"},
        {"x<sup>2</sup> H<sub>2</SUB>O <b>b</b><i>i</i> a<br>b<br/>c <center>m</center>", "x2 H2O bi a\nb\nc m"},
        {"</b>a<b><u>u</u><script>x</script><b onclick=x>", "a<u>u</u><script>x</script><b onclick=x>"},
        {"&lt;b&gt; &amp;amp; &#65;&#x42; &#0; &#xD800; &bogus; &", "<b> &amp; AB &#0; &#xD800; &bogus; &"},
        {"**a *b** c*", "a *b c*"},
        {"****", "****"},
        {"**", "**"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char want[256];
        snprintf(want, sizeof want, "%s\n", cases[i].plain);
        check_one(FATHOM_TEXT, cases[i].text, want);
    }
}

static void test_tables_as_text(void **state)
{
    (void)state;
    const struct {
        const char *text, *plain;
    } cases[] = {
        {"<table></table>", ""},
        {"<table><tr><td></td></tr></table>after", "\n\nafter"},
        {"before <table><tr><td>a</table> after", "before\n\na\n\nafter"},
        {"<table><tr><td>cut <td>off", "cut\toff"},
        {"<TABLE border=1><THEAD><TR><TH>h</TH></TR></THEAD><TBODY><TR><TD>d<br>e</TD></TR></TBODY></TABLE>", "h\nd e"},
        {"<table>stray<tr>text<td>x</td>more</tr></table>", "stray\ntext\tx\tmore"},
        {"<table><tr><td>a<table><tr><td>in</td></tr></table>b</td><td>c</td></tr></table>",
         "a<table><tr><td>in</td></tr></table>b\tc"},
        {"<table><tr></tr><tr></tr><tr><td>1<tr><td>2</table>", "1\n2"},
        {"<tablet> and <tr>", "<tablet> and <tr>"},
        {"<table", "<table"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char want[256];
        snprintf(want, sizeof want, "%s%s", cases[i].plain, *cases[i].plain ? "\n" : "");
        check_one(FATHOM_TEXT, cases[i].text, want);
    }
}

#define HEAD "{\"schema\":2,\"fathom\":\"0.1.0\",\"file\":"

static void test_json(void **state)
{
    (void)state;
    struct fathom_read_options read = fathom_read_defaults();
    read.password = "secret";
    struct fathom_writer_options options = {
        .file = "a\"\xff\n", .model = "M", .figures = "f/", .read = &read, .no_stats = true};
    struct fathom_page *pages[] = {make_page(ITEM("image", "[[0,0,999,999]]") "\na\tb", 1, 2, NULL),
                                   make_page("", 2, 2, "lost")};
    check(FATHOM_JSON, &options, pages, 2,
          HEAD "\"a\\\"\\ufffd\\n\",\"model\":\"M\",\"options\":{\"mode\":\"default\",\"max_tokens\":0,\"max_tiles\":0,"
               "\"ngram\":20,\"ngram_window\":90,\"temperature\":0,\"top_p\":1,\"seed\":0,\"retry\":true,\"dpi\":144,"
               "\"alpha\":\"white\",\"icc\":true},\"pages\":[\n"
               "{\"page\":1,\"n_pages\":2,\"status\":\"ok\",\"width\":999,\"height\":1998,"
               "\"text\":\"![](images/0.jpg)\\n\\na\\tb\",\"raw\":\"<|ref|>image<|/ref|><|det|>[[0,0,999,999]]<|/det|>"
               "\\na\\tb\",\"blocks\":[{\"label\":\"image\",\"kind\":\"figure\",\"text\":\"a\\tb\","
               "\"boxes\":[[0,0,999,1998]],\"boxes_pt\":[[0,0,999,1998]],\"figure\":\"f/1_0.jpg\"}]},\n"
               "{\"page\":2,\"n_pages\":2,\"status\":\"failed\",\"error\":\"lost\"}\n]}\n");
    check(FATHOM_JSON, NULL, NULL, 0, HEAD "\"\",\"pages\":[\n]}\n");

    /* a file that could not be read; a page with all there is */
    struct fathom_page *failed = make_page("", 0, 0, "no such file");
    check(FATHOM_JSON_LINES, &(struct fathom_writer_options){.file = "x"}, &failed, 1,
          HEAD "\"x\",\"page\":null,\"status\":\"failed\",\"error\":\"no such file\"}\n");
    const struct fathom_attempt attempts[] = {{"first", FATHOM_PAGE_LOOPED, 7, 0.5, false},
                                              {"wide guard", FATHOM_PAGE_OK, 9, 2, true}};
    struct fathom_page kept = {.number = 3,
                               .n_pages = 3,
                               .status = FATHOM_PAGE_RETRIED,
                               .width = 200,
                               .height = 100,
                               .raw = ITEM("text", "[[0,0,999,500]]") "t",
                               .width_pt = 100,
                               .height_pt = 50,
                               .to_document = {0, -0.5, 0.5, 0, 7, 107.25},
                               .text_layer = "layer",
                               .attempts = attempts,
                               .n_attempts = 2};
    struct fathom_page *page;
    assert_int_equal(fathom_page_restore(&kept, &page, NULL), FATHOM_OK);
    check(FATHOM_JSON_LINES, &(struct fathom_writer_options){.file = "x", .no_stats = true}, &page, 1,
          HEAD "\"x\",\"page\":3,\"n_pages\":3,\"status\":\"retried\",\"width\":200,\"height\":100,\"width_pt\":100,"
               "\"height_pt\":50,\"to_document\":[0,-0.5,0.5,0,7,107.25],\"text\":\"t\",\"raw\":\"<|ref|>text<|/ref|>"
               "<|det|>[[0,0,999,500]]<|/det|>t\",\"blocks\":[{\"label\":\"text\",\"kind\":\"text\",\"text\":\"t\","
               "\"boxes\":[[0,0,200,50]],\"boxes_pt\":[[7,7.25,32,107.25]]}],"
               "\"attempts\":[{\"what\":\"first\",\"status\":\"looped\",\"tokens\":7,\"chosen\":false},"
               "{\"what\":\"wide guard\",\"status\":\"ok\",\"tokens\":9,\"chosen\":true}],\"text_layer\":\"layer\"}\n");
}

static void test_restore(void **state)
{
    (void)state;
    char raw[] = PAGE;
    const uint8_t pixel[3] = {0};
    struct fathom_page kept = {.number = 2, .n_pages = 5, .width = 999, .height = 999, .raw = raw, .rgb = pixel};
    struct fathom_page *page;
    assert_int_equal(fathom_page_restore(&kept, &page, NULL), FATHOM_OK);
    memset(raw, 'x', sizeof raw - 1);
    assert_null(page->rgb);
    assert_string_equal(page->raw, PAGE);
    assert_int_equal(page->n_blocks, 4);
    assert_int_equal(page->blocks[2].n_boxes, 2);
    assert_null(strstr(page->markdown, "<|"));
    assert_int_equal(fathom_page_figures(page), 1);
    char name[FATHOM_FIGURE_NAME];
    fathom_page_figure_name(page, 3, name);
    assert_string_equal(name, "2_3.jpg");
    fathom_page_free(page);
    fathom_page_free(NULL);
    assert_int_equal(fathom_page_restore(&(struct fathom_page){0}, &page, NULL), FATHOM_OK);
    assert_string_equal(page->markdown, "");
    fathom_page_free(page);
}

static void test_kinds(void **state)
{
    (void)state;
    const struct {
        const char *label, *text, *kind;
    } cases[] = {
        {"", "x", "text"},
        {"sub_title", "x", "title"},
        {"image_caption", "x", "caption"},
        {"image", "", "figure"},
        {"equation", "x", "formula"},
        {"text", "<table><tr>", "table"},
        {"table_footnote", "", "other"},
        {"Whatever title, table or image this is", "", "text"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(kind_name(block_kind(&(struct fathom_block){cases[i].label, cases[i].text, NULL, 0})),
                            cases[i].kind);
}

struct full {
    size_t room;
};

static bool until_full(void *user, const char *text, size_t n)
{
    struct full *full = user;
    (void)text;
    if (n > full->room) {
        full->room = 0;
        return false;
    }
    full->room -= n;
    return true;
}

/* Whenever the sink gives up, every later call says so and nothing leaks. */
static void test_a_sink_that_fails(void **state)
{
    (void)state;
    const enum fathom_format formats[] = {FATHOM_MARKDOWN, FATHOM_JSON, FATHOM_JSON_LINES, FATHOM_STATS, FATHOM_TEXT};
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        for (size_t room = 0; room < 2000; room += 100) {
            struct full full = {room};
            struct fathom_writer *w;
            struct fathom_err err = {0};
            struct fathom_page *page = make_page(PAGE, 1, 2, NULL);
            assert_non_null(page);
            assert_int_equal(fathom_writer_open(formats[f], NULL, until_full, &full, &w, &err), FATHOM_OK);
            enum fathom_status first = fathom_writer_page(w, page, &err);
            for (int i = 0; i < 20; i++)
                assert_true(!first || fathom_writer_page(w, page, NULL) == FATHOM_EIO);
            if (first) {
                assert_int_equal(first, FATHOM_EIO);
                assert_string_equal(err.message, "the output cannot be written");
                assert_int_equal(fathom_writer_close(w, &err), FATHOM_EIO);
            } else {
                fathom_writer_discard(w);
            }
            fathom_page_free(page);
        }
    }
    struct fathom_writer *w;
    struct fathom_err err;
    assert_int_equal(fathom_writer_open((enum fathom_format)99, NULL, until_full, NULL, &w, &err), FATHOM_EINVAL);
    assert_null(w);
    fathom_writer_discard(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_markdown),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_marks_in_a_line),
        cmocka_unit_test(test_tables_as_text),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_restore),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_a_sink_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
