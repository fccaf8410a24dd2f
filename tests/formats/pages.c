/* Writes documents of hostile and of many-tongued pages in every format into a folder, for the judges that formats.sh
 * calls: pages.FORMAT, few of them with words that pages.txt lists. */
#include <fathom.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REF "<|ref|>"
#define DET "<|/ref|><|det|>"
#define END "<|/det|>\n"

/* clang-format does not know where a page of tags is to be broken. */
/* clang-format off */
static const char *const pages[] = {
    REF "title" DET "[[100, 50, 900, 100]]" END
    "# Report & <Review>\n\n"
    REF "text" DET "[[100, 120, 480, 400]]" END
    "The quick brown fox jumps over the lazy dog, and **then** some more words "
    "follow so that the paragraph has several lines in its box; \\(a_1 < b\\) and "
    "`code` too.\n\n"
    REF "image" DET "[[520, 120, 900, 400]]" END
    "A caption below\n\n"
    REF "table" DET "[[100, 420, 900, 600]]" END
    "<table><thead><tr><th>Head</th><th "
    "colspan=\"2\">Wide</th></tr></thead><tbody><tr><td "
    "rowspan=2>x<sup>2</sup></td><td>y</td><td>z &amp; "
    "w</td></tr><tr><td>1<br>2</td><td><script>alert(1)</script></td></tr></tbody>"
    "</table>\n\n"
    REF "text" DET "[[100, 620, 900, 800]]" END
    "- one\n  - two\n- three\n\n1. first\n2. second\n\n```\n<pre> & code\n```\n\n"
    REF "equation" DET "[[100, 820, 900, 860]]" END
    "\\[ E = mc^2 \\]\n",

    REF "text" DET "[[100, 100, 900, 200]]" END
    "中文文本识别测试，这是第一行，还有更多的字。\n"
    REF "text" DET "[[100, 210, 900, 300]]" END
    "日本語のテキストと漢字かな交じり文\n"
    REF "text" DET "[[100, 310, 900, 340]]" END
    "مرحبا بالعالم هذا نص عربي\n"
    REF "text" DET "[[100, 350, 900, 400]]" END
    "שלום עולם\n"
    REF "text" DET "[[100, 410, 900, 450]]" END
    "Emoji 😀 🚀 and ∑∫√ ßäöü Ελληνικά Кириллица "
    "हिन्दी ไทย 한국어\n"
    REF "text" DET "[[100, 460, 480, 600], [520, 460, 900, 600]]" END
    "Two columns hold this text, which goes on from the one to the other and is long "
    "enough to need both of them in the end.\n",

    REF "text" DET "[[0,0,0,0]]" END
    "]]> --> <!-- \x01\x1b[31m \x7f \xef\xbf\xbe \xef\xbf\xbf \xed\xa0\x80 \xff\xfe bytes</p></td>"
    REF "text<>&\"'" DET "[[5,5,5,5]]" END
    "<b><i>nested</b> wrong</i> <sup>open &#0; &#x1; &#xFFFE; &lt;script&gt;"
    REF "text" DET "broken" END
    "<table><tr><td colspan=99999 rowspan='-3' "
    "onclick=x>a<td><table><tr><td>in</td></tr></table></table><table></table><table>"
    "<caption>c</caption><tr><tr></tr><td>"
    REF "image" DET "[[990,990,999,999]]" END
    "x\ry\r\nz\n# \n####### seven\n* \n-\n***\n```\n<|ref|>ti",

    "Only text, no layout at all\n\nand a second paragraph",

    "",
};
/* clang-format on */

static bool to_file(void *user, const char *bytes, size_t n) { return fwrite(bytes, 1, n, user) == n; }

static uint8_t *make_pixels(int width, int height, bool grey)
{
    uint8_t *rgb = malloc((size_t)width * (size_t)height * 3);
    for (int i = 0; rgb && i < width * height * 3; i++)
        rgb[i] = (uint8_t)(grey ? i / 3 % 251 : (i * 7 + i / width) % 256);
    return rgb;
}

static bool write_all(const char *folder, const char *name, enum fathom_format format, const uint8_t *colours,
                      const uint8_t *greys, int width, int height)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/pages.%s", folder, name);
    FILE *file = fopen(path, "wb");
    struct fathom_read_options read = fathom_read_defaults();
    struct fathom_writer_options options = {
        .file = "Ünïcode \"<&>\" \xff\xed\xa0\x80 名.pdf", .model = "mini", .figures = "f/", .read = &read};
    struct fathom_writer *writer;
    struct fathom_err err = {0};
    if (!file || fathom_writer_open(format, &options, to_file, file, &writer, &err))
        return false;
    size_t n = sizeof pages / sizeof *pages;
    bool ok = true;
    for (size_t i = 0; i <= n && ok; i++) {
        struct fathom_page kept = {.number = i + 1, .n_pages = n + 1, .width = width, .height = height}, *page;
        if (i == n) {
            kept.status = FATHOM_PAGE_FAILED;
            snprintf(kept.err.message, sizeof kept.err.message, "it broke -- badly <&> \"--->");
        } else {
            kept.raw = pages[i];
            kept.width_pt = width * 0.48;
            kept.height_pt = height * 0.48;
        }
        ok = fathom_page_restore(&kept, &page, &err) == FATHOM_OK;
        if (ok) {
            page->rgb = i == n ? NULL : i % 2 ? greys : colours;
            ok = fathom_writer_page(writer, page, &err) == FATHOM_OK;
            fathom_page_free(page);
        }
    }
    ok = fathom_writer_close(writer, &err) == FATHOM_OK && ok;
    if (!ok)
        fprintf(stderr, "%s: %s\n", name, err.message);
    return fclose(file) == 0 && ok;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        enum fathom_format format;
    } formats[] = {{"md", FATHOM_MARKDOWN}, {"json", FATHOM_JSON},         {"jsonl", FATHOM_JSON_LINES},
                   {"txt", FATHOM_TEXT},    {"html", FATHOM_HTML},         {"hocr", FATHOM_HOCR},
                   {"alto", FATHOM_ALTO},   {"pdf", FATHOM_SEARCHABLE_PDF}};
    const int width = 400, height = 560;
    uint8_t *colours = make_pixels(width, height, false), *greys = make_pixels(width, height, true);
    bool ok = argc == 2 && colours && greys;
    for (size_t i = 0; i < sizeof formats / sizeof *formats && ok; i++)
        ok = write_all(argv[1], formats[i].name, formats[i].format, colours, greys, width, height);
    free(colours);
    free(greys);
    return ok ? 0 : 1;
}
