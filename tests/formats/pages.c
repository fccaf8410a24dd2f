/* Writes documents of hostile and of many-tongued pages in every format into a folder, for the judges that formats.sh
 * calls: pages.FORMAT, few of them with words that pages.txt lists. */
#include <fathom.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ITEM(label, list) "<|ref|>" label "<|/ref|><|det|>" list "<|/det|>\n"

static const char
    *const
        pages
            [] =
                {
                    ITEM("title", "[[100, 50, 900, 100]]") "# Report & <Review>\n\n" ITEM(
                        "text",
                        "[[100, 120, 480, 400]]") "The quick brown fox jumps over the lazy dog, and **then** "
                                                  "some more "
                                                  "words follow so "
                                                  "that the paragraph has "
                                                  "several lines in its box; \\(a_1 < b\\) and `code` "
                                                  "too.\n\n" ITEM(
                                                      "image",
                                                      "[[520, "
                                                      "120, "
                                                      "900, "
                                                      "400]]") "A caption below\n\n" ITEM("table",
                                                                                          "[[100, 420, 900, "
                                                                                          "600]]") "<table"
                                                                                                   "><"
                                                                                                   "thead>"
                                                                                                   "<tr><"
                                                                                                   "th>"
                                                                                                   "Head</"
                                                                                                   "th><"
                                                                                                   "th "
                                                                                                   "colspa"
                                                                                                   "n="
                                                                                                   "\"2\">"
                                                                                                   "Wide</"
                                                                                                   "th></"
                                                                                                   "tr></"
                                                                                                   "thead>"
                                                                                                   "<tbody"
                                                                                                   "><tr><"
                                                                                                   "td "
                                                                                                   "rowspa"
                                                                                                   "n=2>x<"
                                                                                                   "sup>2<"
                                                                                                   "/sup><"
                                                                                                   "/td>"
                                                                                                   "<td>y<"
                                                                                                   "/td><"
                                                                                                   "td>z "
                                                                                                   "&amp; "
                                                                                                   "w</"
                                                                                                   "td></"
                                                                                                   "tr><"
                                                                                                   "tr><"
                                                                                                   "td>1<"
                                                                                                   "br>2</"
                                                                                                   "td><"
                                                                                                   "td><"
                                                                                                   "script"
                                                                                                   ">alert"
                                                                                                   "(1)</"
                                                                                                   "script"
                                                                                                   "></"
                                                                                                   "td></"
                                                                                                   "tr></"
                                                                                                   "tbody>"
                                                                                                   "</"
                                                                                                   "table>"
                                                                                                   "\n"
                                                                                                   "\n" ITEM(
                                                                                                       "te"
                                                                                                       "x"
                                                                                                       "t",
                                                                                                       "[["
                                                                                                       "10"
                                                                                                       "0,"
                                                                                                       " 6"
                                                                                                       "20"
                                                                                                       ", "
                                                                                                       "90"
                                                                                                       "0,"
                                                                                                       " 8"
                                                                                                       "00"
                                                                                                       "]"
                                                                                                       "]") "- "
                                                                                                            "on"
                                                                                                            "e"
                                                                                                            "\n"
                                                                                                            "  "
                                                                                                            "- "
                                                                                                            "tw"
                                                                                                            "o"
                                                                                                            "\n"
                                                                                                            "- "
                                                                                                            "th"
                                                                                                            "re"
                                                                                                            "e"
                                                                                                            "\n"
                                                                                                            "\n"
                                                                                                            "1."
                                                                                                            " "
                                                                                                            "fi"
                                                                                                            "rs"
                                                                                                            "t"
                                                                                                            "\n"
                                                                                                            "2."
                                                                                                            " "
                                                                                                            "se"
                                                                                                            "co"
                                                                                                            "nd"
                                                                                                            "\n"
                                                                                                            "\n"
                                                                                                            "``"
                                                                                                            "`"
                                                                                                            "\n"
                                                                                                            "<"
                                                                                                            "pr"
                                                                                                            "e>"
                                                                                                            " &"
                                                                                                            " "
                                                                                                            "co"
                                                                                                            "de"
                                                                                                            "\n"
                                                                                                            "``"
                                                                                                            "`"
                                                                                                            "\n"
                                                                                                            "\n" ITEM(
                                                                                                                "equa"
                                                                                                                "tio"
                                                                                                                "n",
                                                                                                                "[["
                                                                                                                "100,"
                                                                                                                " 820"
                                                                                                                ", "
                                                                                                                "900,"
                                                                                                                " 860"
                                                                                                                "]]") "\\[ E = mc^2 \\]\n",

                    ITEM("text", "[[100, 100, 900, 200]]") "中文文本识别测试，这是第一行，还有更多的字。\n" ITEM("text", "["
                                                                                                                         "["
                                                                                                                         "1"
                                                                                                                         "0"
                                                                                                                         "0"
                                                                                                                         ","
                                                                                                                         " "
                                                                                                                         "2"
                                                                                                                         "1"
                                                                                                                         "0"
                                                                                                                         ","
                                                                                                                         " "
                                                                                                                         "9"
                                                                                                                         "0"
                                                                                                                         "0"
                                                                                                                         ","
                                                                                                                         " "
                                                                                                                         "3"
                                                                                                                         "0"
                                                                                                                         "0"
                                                                                                                         "]"
                                                                                                                         "]") "日本語のテキストと漢字かな交じり文\n" ITEM("text", "[[100, 310, 900, 340]]") "مرحبا بالعالم هذا نص عربي\n" ITEM("text", "[[100, 350, 900, 400]]") "שלום עולם\n" ITEM("text", "[[100, 410, 900, 450]]") "Emoji 😀 🚀 and ∑∫√ ßäöü "
                                                                                                                                                                                                                                                                                                                                      "Ελληνικά Кириллица हिन्दी ไทย "
                                                                                                                                                                                                                                                                                                                                      "한국어\n" ITEM("text",
                                                                                                                                                                                                                                                                                                                                                      "[[100, 460, "
                                                                                                                                                                                                                                                                                                                                                      "480, 600], "
                                                                                                                                                                                                                                                                                                                                                      "[520, 460, "
                                                                                                                                                                                                                                                                                                                                                      "900, 600]]") "T"
                                                                                                                                                                                                                                                                                                                                                                    "w"
                                                                                                                                                                                                                                                                                                                                                                    "o"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "c"
                                                                                                                                                                                                                                                                                                                                                                    "o"
                                                                                                                                                                                                                                                                                                                                                                    "l"
                                                                                                                                                                                                                                                                                                                                                                    "u"
                                                                                                                                                                                                                                                                                                                                                                    "m"
                                                                                                                                                                                                                                                                                                                                                                    "n"
                                                                                                                                                                                                                                                                                                                                                                    "s"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "h"
                                                                                                                                                                                                                                                                                                                                                                    "o"
                                                                                                                                                                                                                                                                                                                                                                    "l"
                                                                                                                                                                                                                                                                                                                                                                    "d"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "t"
                                                                                                                                                                                                                                                                                                                                                                    "h"
                                                                                                                                                                                                                                                                                                                                                                    "i"
                                                                                                                                                                                                                                                                                                                                                                    "s"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "t"
                                                                                                                                                                                                                                                                                                                                                                    "e"
                                                                                                                                                                                                                                                                                                                                                                    "x"
                                                                                                                                                                                                                                                                                                                                                                    "t"
                                                                                                                                                                                                                                                                                                                                                                    ","
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "w"
                                                                                                                                                                                                                                                                                                                                                                    "h"
                                                                                                                                                                                                                                                                                                                                                                    "i"
                                                                                                                                                                                                                                                                                                                                                                    "c"
                                                                                                                                                                                                                                                                                                                                                                    "h"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "g"
                                                                                                                                                                                                                                                                                                                                                                    "o"
                                                                                                                                                                                                                                                                                                                                                                    "e"
                                                                                                                                                                                                                                                                                                                                                                    "s"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "o"
                                                                                                                                                                                                                                                                                                                                                                    "n"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "f"
                                                                                                                                                                                                                                                                                                                                                                    "r"
                                                                                                                                                                                                                                                                                                                                                                    "o"
                                                                                                                                                                                                                                                                                                                                                                    "m"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "t"
                                                                                                                                                                                                                                                                                                                                                                    "h"
                                                                                                                                                                                                                                                                                                                                                                    "e"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "o"
                                                                                                                                                                                                                                                                                                                                                                    "n"
                                                                                                                                                                                                                                                                                                                                                                    "e"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "t"
                                                                                                                                                                                                                                                                                                                                                                    "o"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "t"
                                                                                                                                                                                                                                                                                                                                                                    "h"
                                                                                                                                                                                                                                                                                                                                                                    "e"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "o"
                                                                                                                                                                                                                                                                                                                                                                    "t"
                                                                                                                                                                                                                                                                                                                                                                    "h"
                                                                                                                                                                                                                                                                                                                                                                    "e"
                                                                                                                                                                                                                                                                                                                                                                    "r"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "a"
                                                                                                                                                                                                                                                                                                                                                                    "n"
                                                                                                                                                                                                                                                                                                                                                                    "d"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "i"
                                                                                                                                                                                                                                                                                                                                                                    "s"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "l"
                                                                                                                                                                                                                                                                                                                                                                    "o"
                                                                                                                                                                                                                                                                                                                                                                    "n"
                                                                                                                                                                                                                                                                                                                                                                    "g"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "e"
                                                                                                                                                                                                                                                                                                                                                                    "n"
                                                                                                                                                                                                                                                                                                                                                                    "o"
                                                                                                                                                                                                                                                                                                                                                                    "u"
                                                                                                                                                                                                                                                                                                                                                                    "g"
                                                                                                                                                                                                                                                                                                                                                                    "h"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "t"
                                                                                                                                                                                                                                                                                                                                                                    "o"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "n"
                                                                                                                                                                                                                                                                                                                                                                    "e"
                                                                                                                                                                                                                                                                                                                                                                    "e"
                                                                                                                                                                                                                                                                                                                                                                    "d"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "b"
                                                                                                                                                                                                                                                                                                                                                                    "o"
                                                                                                                                                                                                                                                                                                                                                                    "t"
                                                                                                                                                                                                                                                                                                                                                                    "h"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "o"
                                                                                                                                                                                                                                                                                                                                                                    "f"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "t"
                                                                                                                                                                                                                                                                                                                                                                    "h"
                                                                                                                                                                                                                                                                                                                                                                    "e"
                                                                                                                                                                                                                                                                                                                                                                    "m"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "i"
                                                                                                                                                                                                                                                                                                                                                                    "n"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "t"
                                                                                                                                                                                                                                                                                                                                                                    "h"
                                                                                                                                                                                                                                                                                                                                                                    "e"
                                                                                                                                                                                                                                                                                                                                                                    " "
                                                                                                                                                                                                                                                                                                                                                                    "e"
                                                                                                                                                                                                                                                                                                                                                                    "n"
                                                                                                                                                                                                                                                                                                                                                                    "d"
                                                                                                                                                                                                                                                                                                                                                                    "."
                                                                                                                                                                                                                                                                                                                                                                    "\n",

                    ITEM(
                        "text",
                        "[[0,0,0,0]]") "]]> --> <!-- \x01\x1b[31m \x7f \xef\xbf\xbe \xef\xbf\xbf \xed\xa0\x80 \xff\xfe "
                                       "bytes</p></td>" ITEM(
                                           "text<>&\"'",
                                           "[[5,5,5,5]]") "<b><i>nested</b> wrong</i> <sup>open &#0; &#x1; &#xFFFE; "
                                                          "&lt;script&gt;" ITEM(
                                                              "text", "broken") "<table><tr><td colspan=99999 "
                                                                                "rowspan='-3' "
                                                                                "onclick=x>a<td><table><tr><td>in</"
                                                                                "td></tr></table>"
                                                                                "</table><table></"
                                                                                "table><table><caption>c</"
                                                                                "caption><tr><tr></tr><td>" ITEM(
                                                                                    "image",
                                                                                    "[[990,990,999,999]]") "x\ry\r\n"
                                                                                                           "z\n# "
                                                                                                           "\n######"
                                                                                                           "# "
                                                                                                           "seven\n*"
                                                                                                           " \n-\n**"
                                                                                                           "*\n```"
                                                                                                           "\n<|ref|"
                                                                                                           ">ti",
                    "Only text, no layout at all\n\nand a second paragraph",
                    "",
};

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
