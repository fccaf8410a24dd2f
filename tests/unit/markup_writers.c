/* HTML, hOCR, ALTO and PDF: what they make of a page character by character, and of the largest ones. */
#include "writers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document/bidi.h"
#include "document/html_text.h"
#include "document/pdf_text.h"

#include <cmocka.h>

static struct strbuf write_one(enum fathom_format format, struct fathom_page *page)
{
    struct strbuf out = {0};
    struct fathom_err err;
    if (write_pages(&out, format, &(struct fathom_writer_options){.file = "a\"b"}, &page, 1, &err))
        fail_msg("%s", err.message);
    return out;
}

/* The page's part of the document, from `start` on, is this. */
static void check_part(enum fathom_format format, struct fathom_page *page, const char *start, const char *want)
{
    struct strbuf out = write_one(format, page);
    const char *part = strstr(strbuf_text(&out), start);
    assert_non_null(part);
    assert_string_equal(part, want);
    strbuf_free(&out);
}

static void test_html_text(void **state)
{
    (void)state;
    const struct {
        const char *text, *html;
    } cases[] = {
        {"", ""},
        {"## A *b*\nc & <d>\ne", "<h2>A <em>b</em></h2>\n<p>c &amp; &lt;d&gt;<br>\ne</p>\n"},
        {"- a\n  - b\n- c\n1. d\n2) e",
         "<ul>\n<li>a<ul>\n<li>b</li></ul>\n</li>\n<li>c</li></ul>\n<ol start=\"1\">\n<li>d</li>\n<li>e</li></ol>\n"},
        {"      - deep", "<ul>\n<li>deep</li></ul>\n"},
        {"```\na < *b*\n```", "<pre><code>a &lt; *b*</code></pre>\n"},
        {"$x<1$ `y` H<sub>2</sub>", "<p><code class=\"formula\">$x&lt;1$</code> <code>y</code> H<sub>2</sub></p>\n"},
        {"<b>a<i>b</b>c</i><b>", "<p><b>ab</b>c</p>\n"},
        {"<script>alert(1)</script><img src=x onerror=y><a href=\"javascript:z\">",
         "<p>&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=y&gt;&lt;a "
         "href=&quot;javascript:z&quot;&gt;</p>"
         "\n"},
        {"<table><thead><tr><th rowspan=2 colspan='3' onclick=x>h</th></tr></thead><tr><td rowspan=9>a<br>b</td><td>c"
         "</td></tr><tr><td style=\"x\">d</table>",
         "<table>\n<thead>\n<tr><th colspan=\"3\">h</th></tr>\n</thead>\n<tbody>\n<tr><td rowspan=\"2\">a<br>\nb</td>"
         "<td>c</td></tr>\n<tr><td>d</td></tr>\n</tbody>\n</table>\n"},
        {"<table><tr></tr></table>", ""},
        {"<table><tr><td colspan=0 rowspan=-1>a</td><td colspan=99999>b",
         "<table>\n<tbody>\n<tr><td>a</td><td colspan=\"1000\">b</td></tr>\n</tbody>\n</table>\n"},
        {"a\x01\x0c\xff\xed\xa0\x80\xef\xbf\xbe\x7f z", "<p>a\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD z</p>\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct strbuf out = {0};
        assert_int_equal(html_add_text(&out, cases[i].text, NULL), FATHOM_OK);
        assert_string_equal(strbuf_text(&out), cases[i].html);
        strbuf_free(&out);
    }
}

static void test_html(void **state)
{
    (void)state;
    const uint8_t pixels[3 * 4] = {0};
    struct fathom_page *page = make_page(ITEM("image", "[[0,0,999,999]]") "\nx", 2, 3, NULL);
    check_part(FATHOM_HTML, page, "<div class=\"page",
               "<div class=\"page\" id=\"page-2\">\n<div class=\"figure\" dir=\"auto\">\n<figure>[figure 1 of page 2]"
               "</figure>\n<p>x</p>\n</div>\n</div>\n</body>\n</html>\n");
    page = make_page(ITEM("image", "[[0,0,999,999]]"), 2, 3, NULL);
    page->rgb = pixels;
    page->width = page->height = 2;
    struct strbuf out = write_one(FATHOM_HTML, page);
    assert_non_null(strstr(out.text, "<figure><img src=\"data:image/jpeg;base64,/9j/4AAQSkZJRgABAQAAAQABAAD/"));
    assert_non_null(strstr(out.text, "\" alt=\"figure 1 of page 2\"></figure>"));
    assert_non_null(
        strstr(out.text, "content=\"default-src 'none'; img-src data: 'self'; style-src 'unsafe-inline'\""));
    assert_non_null(strstr(out.text, "<title>a&quot;b</title>"));
    strbuf_free(&out);
    check_part(FATHOM_HTML, make_page("", 1, 1, "bad <b>"), "<div class=\"page",
               "<div class=\"page\" id=\"page-1\">\n<p class=\"failed\">page 1 failed: bad &lt;b&gt;</p>\n</div>\n"
               "</body>\n</html>\n");
}

static void test_hocr(void **state)
{
    (void)state;
    struct fathom_page *page = make_page(
        ITEM("title", "[[0,0,999,100]]") "\n# T & t\n" ITEM(
            "table", "[[0,200,500,300],[0,300,600,400]]") "<table><tr><td>a</td><td>b</td></tr><tr><td>c</"
                                                          "table>" ITEM("image", "[[1,1,2,2]]") ITEM("x", "") "y",
        1, 1, NULL);
    page->width_pt = 999 * 0.5;
    page->height_pt = 1998 * 0.5;
    check_part(
        FATHOM_HOCR, page, "<div class=\"ocr_page",
        "<div class=\"ocr_page\" id=\"page_1\" title=\"image &quot;a'b&quot;; bbox 0 0 999 1998; ppageno 0; scan_res "
        "144 144\">\n<div class=\"ocr_carea\" id=\"block_1_1\" title=\"bbox 0 0 999 200\"><p>T &amp; t</p></div>\n"
        "<div class=\"ocr_table\" id=\"block_1_2\" title=\"bbox 0 400 600 800\"><p>a\tb<br />\nc</p></div>\n"
        "<div class=\"ocr_image\" id=\"block_1_3\" title=\"bbox 1 2 2 4\"></div>\n"
        "<div class=\"ocr_carea\" id=\"block_1_4\"><p>y</p></div>\n</div>\n</body>\n</html>\n");
    check_part(FATHOM_HOCR, make_page("", 2, 2, "a--b-"), "<!-- ",
               "<!-- page 2 failed: a- -b-  -->\n</div>\n</body>\n</html>\n");
}

static void test_alto(void **state)
{
    (void)state;
    check_part(
        FATHOM_ALTO,
        make_page(ITEM("text", "[[0,0,999,100]]") "one  <two>\n\nthree" ITEM("image", "[[1,1,2,2]]") "cap", 1, 1, NULL),
        "<Page ",
        "<Page ID=\"page_1\" PHYSICAL_IMG_NR=\"1\" WIDTH=\"999\" HEIGHT=\"1998\" PROCESSING=\"fathom\">\n"
        "<PrintSpace HPOS=\"0\" VPOS=\"0\" WIDTH=\"999\" HEIGHT=\"1998\">\n"
        "<TextBlock ID=\"block_1_1\" TAGREFS=\"kind_text\" HPOS=\"0\" VPOS=\"0\" WIDTH=\"999\" HEIGHT=\"200\">\n"
        "<TextLine><String CONTENT=\"one\"/><SP/><String CONTENT=\"&lt;two&gt;\"/></TextLine>\n"
        "<TextLine><String CONTENT=\"three\"/></TextLine>\n</TextBlock>\n"
        "<Illustration ID=\"figure_1_2\" TAGREFS=\"kind_figure\" HPOS=\"1\" VPOS=\"2\" WIDTH=\"1\" HEIGHT=\"2\"/>\n"
        "<TextBlock ID=\"block_1_2\" TAGREFS=\"kind_caption\">\n"
        "<TextLine><String CONTENT=\"cap\"/></TextLine>\n</TextBlock>\n</PrintSpace>\n</Page>\n</Layout>\n</alto>\n");
    check_part(FATHOM_ALTO, NULL, "<Page ",
               "<Page ID=\"page_0\" PHYSICAL_IMG_NR=\"0\" QUALITY=\"Missing\"/>\n</Layout>\n</alto>\n");
}

/* ---- PDF ------------------------------------------------------------------------------------------------------ */

static void check_operators(const char *text, const struct pdf_area *areas, size_t n, const char *want)
{
    struct strbuf out = {0};
    struct pdf_font font = {0};
    assert_int_equal(pdf_add_text(&out, &font, text, strlen(text), areas, n, NULL), FATHOM_OK);
    assert_string_equal(strbuf_text(&out), want);
    strbuf_free(&out);
    pdf_font_free(&font);
}

static void test_pdf_text(void **state)
{
    (void)state;
    /* Four characters of half a size fill 100 points: 12 high, 10 large, five sizes wide at most. */
    const struct pdf_area wide = {0, 20, 20, 32}, narrow = {0, 0, 10, 24}, below = {50, 0, 60, 24},
                          tiny = {1, 1, 1.1, 1.1};
    check_operators("abab", &wide, 1, "/F 10 Tf 100 Tz\n1 0 0 1 0 22 Tm <0001000200010002> Tj\n");
    check_operators(" \n a\t b \n\n", &wide, 1, "/F 10 Tf 130 Tz\n1 0 0 1 0 22 Tm <000100020003> Tj\n");
    check_operators("ab ba", &narrow, 1,
                    "/F 10 Tf 100 Tz\n1 0 0 1 0 14 Tm <00010002> Tj\n1 0 0 1 0 2 Tm <00020001> Tj\n");
    const struct pdf_area both[] = {narrow, below};
    check_operators("ab\nba\naa\nbb", both, 2,
                    "/F 10 Tf 100 Tz\n1 0 0 1 0 14 Tm <00010002> Tj\n1 0 0 1 0 2 Tm <00020001> Tj\n"
                    "/F 10 Tf 100 Tz\n1 0 0 1 50 14 Tm <00010001> Tj\n1 0 0 1 50 2 Tm <00020002> Tj\n");
    /* Chinese breaks anywhere, a word nowhere: it is squeezed. */
    check_operators("中文", &narrow, 1, "/F 10 Tf 100 Tz\n1 0 0 1 0 14 Tm <0001> Tj\n1 0 0 1 0 2 Tm <0002> Tj\n");
    check_operators("aaaaaaaa", &wide, 1, "/F 10 Tf 50 Tz\n1 0 0 1 0 22 Tm <00010001000100010001000100010001> Tj\n");
    check_operators("a", &tiny, 1, "/F 0.0833 Tf 130 Tz\n1 0 0 1 1 1.0167 Tm <0001> Tj\n");
    check_operators("", &wide, 1, "");
    check_operators("אב", &wide, 1, "/F 10 Tf 130 Tz\n1 0 0 1 0 22 Tm <00010002> Tj\n");
}

static void check_order(const char *in, const char *want)
{
    uint32_t codes[64];
    char seen[65] = "";
    size_t n = strlen(in);
    for (size_t i = 0; i < n; i++) /* capitals stand for letters that go to the left */
        codes[i] = in[i] >= 'A' && in[i] <= 'Z' ? 0x5d0u + (uint32_t)(in[i] - 'A') : (uint32_t)in[i];
    bidi_reorder(codes, n);
    for (size_t i = 0; i < n; i++)
        seen[i] = (char)(codes[i] >= 0x5d0 ? 'A' + (int)(codes[i] - 0x5d0) : (int)codes[i]);
    assert_string_equal(seen, want);
}

static void test_bidi(void **state)
{
    (void)state;
    check_order("", "");
    check_order("plain 12.", "plain 12.");
    check_order("ABC DEF", "FED CBA");
    check_order("ab CD EF gh", "ab FE DC gh");
    check_order("ABC de 12 FG.", ".GF de 12 CBA");
    check_order("ab CD 12 EF", "ab FE 12 DC");
    check_order(" 12 AB", "BA 12 ");
}

static void test_font(void **state)
{
    (void)state;
    struct pdf_font font = {0};
    assert_int_equal(pdf_font_cid(&font, 'a'), 1);
    assert_int_equal(pdf_font_cid(&font, 0x1f600), 2);
    assert_int_equal(pdf_font_cid(&font, 'a'), 1);
    assert_int_equal(pdf_font_cid(&font, 7), 3);
    assert_int_equal(pdf_font_cid(&font, ' '), 3);
    assert_int_equal(pdf_font_cid(&font, 0x4e00), 4);
    assert_int_equal(pdf_font_cid(&font, 0x4e01), 5);
    assert_int_equal(pdf_font_cid(&font, 0xd800), 6);
    assert_int_equal(pdf_font_cid(&font, 0xffff), 6);
    assert_int_equal(pdf_font_cid(&font, 0xffffffff), 6);
    struct strbuf out = {0};
    pdf_font_add_to_unicode(&font, &out);
    assert_non_null(strstr(out.text, "6 beginbfchar\n<0001> <0061>\n<0002> <D83DDE00>\n<0003> <0020>\n<0004> <4E00>\n"
                                     "<0005> <4E01>\n<0006> <FFFD>\nendbfchar\n"));
    strbuf_cut(&out, 0);
    pdf_font_add_widths(&font, &out);
    assert_string_equal(out.text, "2 2 1000\n4 5 1000\n");
    strbuf_free(&out);
    pdf_font_free(&font);

    for (uint32_t c = 0x20000; c < 0x20000 + 70000; c++)
        assert_int_not_equal(pdf_font_cid(&font, c), 0);
    assert_int_equal(font.n, PDF_FONT_MAX);
    assert_int_equal(pdf_font_cid(&font, 0x20000), 1);
    assert_int_equal(pdf_font_cid(&font, 'x'), PDF_FONT_MAX);
    assert_int_equal(font.characters[PDF_FONT_MAX - 1], 0xfffd);
    pdf_font_free(&font);
}

/* A page's own JPEG is in the file byte for byte, one that does not fit the page is not. */
static void test_pdf_pictures(void **state)
{
    (void)state;
    static const uint8_t jpeg[] =
        "\xff\xd8\xff\xc0\0\x11\x08\0\x02\0\x04\3\1\x11\0\2\x11\1\3\x11\1 whatever follows \xff\xd9";
    const uint8_t pixels[4 * 2 * 3] = {0, 1};
    for (int fits = 0; fits < 2; fits++) {
        struct fathom_page *page = make_page("text", 1, 1, NULL);
        page->width = 4;
        page->height = fits ? 2 : 1;
        page->rgb = pixels;
        page->jpeg = jpeg;
        page->jpeg_bytes = sizeof jpeg - 1;
        struct strbuf out = write_one(FATHOM_SEARCHABLE_PDF, page);
        assert_int_equal(memmem(out.text, out.n, jpeg, sizeof jpeg - 1) != NULL, fits);
        assert_int_equal(memmem(out.text, out.n, "/DCTDecode", 10) != NULL, fits);
        assert_int_equal(memmem(out.text, out.n, "/Predictor 15 /Colors 3 /Columns 4", 34) != NULL, !fits);
        assert_non_null(memmem(out.text, out.n, fits ? "/MediaBox [0 0 4 2]" : "/MediaBox [0 0 4 1]", 19));
        strbuf_free(&out);
    }
    for (size_t n = 0; n < sizeof jpeg; n++) { /* headers that break off */
        struct fathom_page *page = make_page("text", 1, 1, NULL);
        uint8_t *cut = malloc(n + 1);
        page->width = 4;
        page->height = 2;
        page->rgb = pixels;
        page->jpeg = memcpy(cut, jpeg, n);
        page->jpeg_bytes = n;
        struct strbuf out = write_one(FATHOM_SEARCHABLE_PDF, page);
        strbuf_free(&out);
        free(cut);
    }
    struct fathom_page *huge = make_page("text", 1, 1, NULL), *bare = make_page("text", 7, 9, NULL);
    huge->rgb = pixels;
    huge->width = 4;
    huge->height = 2;
    huge->width_pt = 28801;
    huge->height_pt = 10;
    struct strbuf out = write_one(FATHOM_SEARCHABLE_PDF, huge);
    assert_non_null(memmem(out.text, out.n, "/MediaBox [0 0 9600.3333 3.3333] /UserUnit 3", 44));
    strbuf_cut(&out, 0);
    struct fathom_err err;
    assert_int_equal(write_pages(&out, FATHOM_SEARCHABLE_PDF, NULL, &bare, 1, &err), FATHOM_EINVAL);
    assert_string_equal(err.message, "page 7 has no pixels, which a PDF needs");
    strbuf_free(&out);
}

/* ---- all ------------------------------------------------------------------------------------------------------ */

static const enum fathom_format formats[] = {FATHOM_MARKDOWN, FATHOM_JSON, FATHOM_TEXT,          FATHOM_HTML,
                                             FATHOM_HOCR,     FATHOM_ALTO, FATHOM_SEARCHABLE_PDF};

/* A mebibyte of text in one block, a hundred thousand blocks, marks that never close: in time and memory that grow with
 * them. */
static void test_large_pages(void **state)
{
    (void)state;
    const char *const parts[] = {ITEM("text", "[[1,1,2,2]]") "x\n",
                                 "word and ",
                                 "中",
                                 "**",
                                 "`",
                                 "\\(",
                                 "<b>",
                                 "<table>",
                                 "<td>",
                                 "&#",
                                 "- x\n",
                                 "a\n",
                                 "\n",
                                 "$"};
    static const uint8_t pixels[999 * 1998 * 3];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t n = strlen(parts[i]), times = i == 0 ? 20000 : (i < 3 ? 1u << 19 : 1u << 16) / n;
        char *raw = malloc(n * times + 100);
        assert_non_null(raw);
        size_t at = i == 0 ? 0 : (size_t)sprintf(raw, ITEM("text", "[[100,100,900,900]]"));
        for (size_t k = 0; k < times; k++, at += n)
            memcpy(raw + at, parts[i], n);
        raw[at] = 0;
        for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
            if (formats[f] == FATHOM_SEARCHABLE_PDF && i % 4 != 0)
                continue; /* compressing the picture takes longer than all the rest */
            struct fathom_page *page = make_page(raw, 1, 1, NULL);
            assert_non_null(page);
            page->rgb = pixels;
            struct strbuf out = write_one(formats[f], page);
            assert_true(out.n < 60 * at + 20000);
            strbuf_free(&out);
        }
        free(raw);
    }
}

static bool until_full(void *user, const char *text, size_t n)
{
    size_t *room = user;
    (void)text;
    bool fits = n <= *room;
    *room = fits ? *room - n : 0;
    return fits;
}

static void test_a_sink_that_fails(void **state)
{
    (void)state;
    static const uint8_t pixels[60 * 60 * 3];
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        bool through = false;
        for (size_t most = 0; !through; most += 1 + most / 16) {
            struct fathom_page *page = make_page(
                ITEM("image", "[[0,0,999,999]]") "\nt" ITEM("table", "[[0,0,9,9]]") "<table><tr><td>x", 1, 1, NULL);
            page->rgb = pixels;
            page->width = page->height = 60;
            size_t room = most;
            struct fathom_writer *w;
            struct fathom_err err = {0};
            assert_int_equal(fathom_writer_open(formats[f], NULL, until_full, &room, &w, &err), FATHOM_OK);
            fathom_writer_page(w, page, NULL);
            enum fathom_status status = fathom_writer_close(w, &err);
            assert_true(status == FATHOM_OK || status == FATHOM_EIO);
            assert_true(status == FATHOM_OK || strcmp(err.message, "the output cannot be written") == 0);
            through = status == FATHOM_OK;
            fathom_page_free(page);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_html_text),   cmocka_unit_test(test_html),
        cmocka_unit_test(test_hocr),        cmocka_unit_test(test_alto),
        cmocka_unit_test(test_pdf_text),    cmocka_unit_test(test_bidi),
        cmocka_unit_test(test_font),        cmocka_unit_test(test_pdf_pictures),
        cmocka_unit_test(test_large_pages), cmocka_unit_test(test_a_sink_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
