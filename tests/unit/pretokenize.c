#include "text/pretokenize.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "text/unicode.h"

/* The pieces of a text, separated by '|' in expected (which may be in a text as well). */
static void check(const char *text, const char *expected)
{
    char joined[512];
    size_t n = strlen(text), n_joined = 0;
    while (n) {
        size_t piece = pretoken_next(text, n);
        assert_true(piece > 0 && piece <= n);
        if (n_joined)
            joined[n_joined++] = '|';
        memcpy(joined + n_joined, text, piece);
        n_joined += piece;
        text += piece;
        n -= piece;
    }
    joined[n_joined] = 0;
    assert_string_equal(joined, expected);
}

static void test_numbers(void **state)
{
    (void)state;
    check("1234567", "123|456|7");
    check("a12b", "a|12|b");
    check("3.14159", "3|.|141|59");
    check("x²½Ⅷ٣", "x|²½Ⅷ|٣");
    check(" 12", " |12");
    check("  12", "  |12");
    check("$1,299.99", "$|1|,|299|.|99");
}

static void test_ideographs(void **state)
{
    (void)state;
    check("日本語のテキスト", "日本語のテキスト");
    check("abc日本", "abc|日本");
    check(" 日本", " |日本");
    check("日本 abc", "日本| abc");
    check("日本。", "日本|。");
    check("カ・カ", "カ|・|カ");   /* inside the run the third split goes on: the middle dot is punctuation */
    check("\u3040か", "\u3040か"); /* unassigned, behind which letters may follow */
    check("か\u3040", "か|\u3040");
    check("か\u309a", "か\u309a");
    check("龥龦", "龥|龦"); /* the range ends at U+9FA5 */
    check("한국", "한국");
}

static void test_words(void **state)
{
    (void)state;
    check("Hello world", "Hello| world");
    check("don't", "don|'t");
    check("#include", "#include");
    check(".fooé", ".foo|é"); /* ASCII letters only behind punctuation */
    check("éa", "éa");
    check("!!a", "!!|a");
    check("a\u0301b", "a\u0301b");
    check("\u0301a", "\u0301a");
    check(" \u0301", " \u0301");
    check("\ta", "\ta");
    check("\u00a0a", "\u00a0a");
    check("\na", "\n|a");
    check("\u200ba", "\u200ba");
    check("_a", "_a");
    check("«a", "«|a");
}

static void test_punctuation(void **state)
{
    (void)state;
    check("Hello, world!", "Hello|,| world|!");
    check("a !?\n\nb", "a| !?\n\n|b");
    check("a  !", "a| | !");
    check("\t!", "\t|!");
    check("~=+", "~=+");
    check("<|ref|>", "<||ref||>");
    check("!\r\n \n", "!\r\n| \n");
    check("→ x", "→| x");
}

static void test_white_space(void **state)
{
    (void)state;
    check("a   b", "a|  | b");
    check("a   ", "a|   ");
    check("a \n b", "a| \n| b");
    check("a \n \n  b", "a| \n \n| | b");
    check("\n\n\n", "\n\n\n");
    check("  \r\n\t", "  \r\n|\t");
    check("\u3000\u3000x", "\u3000|\u3000x");
    check("\xc2\x85\u2028 ", "\xc2\x85\u2028 ");
    check(" ", " ");
    check("\t\t1", "\t\t|1");
}

static void test_characters_of_no_class(void **state)
{
    (void)state;
    check("\x01\x02", "\x01\x02");
    check("\x01\x02z", "\x01|\x02z");
    check("\x01!", "\x01|!");
    check("\x01 ", "\x01| ");
    check("\x01\n", "\x01|\n");
    check("\x7f\x31", "\x7f|1");
    check("\u0378\ufeffa", "\u0378|\ufeffa");
}

static void test_invalid_utf8(void **state)
{
    (void)state;
    check("\xff\xfe", "\xff\xfe");
    check("a\xffz", "a|\xffz");
    check("\xe2\x82 a", "\xe2\x82| a");
    check("\xed\xa0\x80", "\xed\xa0\x80");
    check("1\x80", "1|\x80");
}

static void test_cut_character(void **state)
{
    (void)state;
    assert_int_equal(pretoken_next("\xe6\x97\xa5", 2), 2); /* what follows the end is not looked at */
    assert_int_equal(pretoken_next("ab", 1), 1);
}

static void test_strip(void **state)
{
    (void)state;
    const struct {
        const char *text, *expected;
    } cases[] = {
        {"", ""},
        {" \t\r\n\x0b\x0c", ""},
        {" a b ", "a b"},
        {"\x1c\x1d\x1e\x1f\xc2\x85\u00a0\u2003\u3000x\u3000\u2028\x1f", "x"},
        {"\u200bx\u200b", "\u200bx\u200b"},
        {"日本 ", "日本"},
        {"é", "é"},
        {"\x80\x80 ", "\x80\x80"},
        {" \xff ", "\xff"},
        {"\xa0", "\xa0"},
        {"\x80\x80\x80\x80\x80", "\x80\x80\x80\x80\x80"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = strlen(cases[i].text);
        const char *stripped = text_strip(cases[i].text, &n);
        assert_int_equal(n, strlen(cases[i].expected));
        assert_memory_equal(stripped, cases[i].expected, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),      cmocka_unit_test(test_ideographs),
        cmocka_unit_test(test_words),        cmocka_unit_test(test_punctuation),
        cmocka_unit_test(test_white_space),  cmocka_unit_test(test_characters_of_no_class),
        cmocka_unit_test(test_invalid_utf8), cmocka_unit_test(test_cut_character),
        cmocka_unit_test(test_strip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
