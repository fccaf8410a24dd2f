/* Small parts of the program that take text apart: lists of pages, names of outputs, what a terminal may show. */
#include "names.h"
#include "page_set.h"
#include "utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_pages(void **state)
{
    (void)state;
    static const char *const valid[] = {"1", "1-3,7,10-", "2-2", "-5", "1-,3", "99999999"};
    static const char *const invalid[] = {
        "", ",", "0", "1,", ",1", "3-2", "1--2", "a", "1 ", " 1", "1-3-5", "-", "1;2", "18446744073709551617", "1,-"};
    for (size_t i = 0; i < sizeof valid / sizeof *valid; i++)
        assert_true(page_set_is_valid(valid[i]));
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++)
        assert_false(page_set_is_valid(invalid[i]));

    for (size_t page = 1; page < 20; page++) {
        assert_int_equal(page_set_has("2-3,7,10-", page), page == 2 || page == 3 || page == 7 || page >= 10);
        assert_int_equal(page_set_has("-4,6", page), page <= 4 || page == 6);
        assert_true(page_set_has(NULL, page));
    }
    assert_true(page_set_has("10-", SIZE_MAX));
}

static void check_name(struct names *names, const char *input, const char *wanted)
{
    char *name = names_make(names, input);
    assert_non_null(name);
    assert_string_equal(name, wanted);
    free(name);
}

static void test_names(void **state)
{
    (void)state;
    struct names names = {0};
    assert_true(names_take(&names, "kept"));
    check_name(&names, "a.png", "a");
    check_name(&names, "a.PDF", "a-2");
    check_name(&names, "a", "a-3");
    check_name(&names, "a-2.jpg", "a-2-2");
    check_name(&names, "kept.tiff", "kept-2");
    check_name(&names, "sub/a.png", "sub/a");
    check_name(&names, "sub/.png", "sub/.png"); /* an ending alone is a name */
    check_name(&names, "v1.2.pdf", "v1.2");
    check_name(&names, "notes.txt", "notes.txt");
    check_name(&names, "-", "stdin");

    /* A long name is cut between two characters. */
    char longest[256] = "x";
    for (size_t i = 1; i + 2 < sizeof longest; i += 2)
        memcpy(longest + i, "\xc3\xa4", 3);
    char *name = names_make(&names, longest);
    assert_int_equal(strlen(name), 199);
    free(name);
    names_free(&names);
}

static void check_printable(const char *text, const char *wanted)
{
    char *printable = utf8_printable(text);
    assert_string_equal(printable, wanted);
    free(printable);
}

static void test_printable(void **state)
{
    (void)state;
    check_printable("caf\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80");
    check_printable("\x1b[2J\t\n\x7f", "?[2J???");
    check_printable("\xc2\x85\xc2\x9b\xc2\xa0", "??\xc2\xa0");
    check_printable("\xe2\x80\xa8\xe2\x80\xae\xe2\x81\xa6\xe2\x81\xa9\xe2\x80\x94", "????\xe2\x80\x94");
    check_printable("\xff\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80\xe2\x82", "????????????");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
