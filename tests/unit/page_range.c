/* A choice of pages: what is understood, and what is refused with which words. */
#include "document/page_range.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The chosen pages as text: "1 2 3". */
static void list(char out[256], const struct page_range *r)
{
    size_t n = 0, at = 0;
    out[0] = 0;
    for (size_t page = page_range_next(r, 0); page; page = page_range_next(r, page), n++)
        at += (size_t)snprintf(out + at, 256 - at, "%s%zu", n ? " " : "", page);
    assert_int_equal(n, page_range_count(r));
}

static void test_choices(void **state)
{
    static const struct {
        const char *text, *pages;
    } cases[] = {
        {NULL, "1 2 3 4 5 6 7 8 9 10 11 12"},
        {"1", "1"},
        {"12", "12"},
        {"1-3,7,10-", "1 2 3 7 10 11 12"},
        {"10-,7,1-3", "1 2 3 7 10 11 12"},
        {"-2", "1 2"},
        {"3,3,3,2-4,4", "2 3 4"},
        {"1-5,2-3,5-6", "1 2 3 4 5 6"},
        {"1,3,5,2,4", "1 2 3 4 5"},
        {"  2 - 3\t, 5 ", "2 3 5"},
        {"00002", "2"},
        {"12-", "12"},
        {"12-12", "12"},
        {"1-", "1 2 3 4 5 6 7 8 9 10 11 12"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct page_range range;
        struct fathom_err err = {0};
        char pages[256];
        if (page_range_parse(&range, cases[i].text, 12, &err))
            fail_msg("'%s': %s", cases[i].text, err.message);
        list(pages, &range);
        assert_string_equal(pages, cases[i].pages);
        page_range_free(&range);
    }
}

static void test_refused(void **state)
{
#define FORM " is no choice of pages, expected a form like 1-3,7,10-"
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "''" FORM},
        {",", "''" FORM},
        {"1,", "''" FORM},
        {"1,,2", "''" FORM},
        {"-", "'-'" FORM},
        {"1-2-3", "'1-2-3'" FORM},
        {"1--2", "'1--2'" FORM},
        {"x", "'x'" FORM},
        {"1.5", "'1.5'" FORM},
        {"+1", "'+1'" FORM},
        {"1 2", "'1 2'" FORM},
        {"1\n", "'1?'" FORM},
        {"0x10", "'0x10'" FORM},
        {"1,\xff\xfe", "'\xff\xfe'" FORM},
        {"0", "pages '0': pages are counted from 1"},
        {"0-3", "pages '0-3': pages are counted from 1"},
        {"-0", "pages '-0': pages are counted from 1"},
        {"7-3", "pages '7-3' run backwards"},
        {"13", "pages '13' go past the end: the document has 12 pages"},
        {"1,13-", "pages '13-' go past the end: the document has 12 pages"},
        {"5-13", "pages '5-13' go past the end: the document has 12 pages"},
        {"99999999999999999999999999", "pages '99999999999999999999999999' go past the end: the document has 12 pages"},
        {"18446744073709551616", "pages '18446744073709551616' go past the end: the document has 12 pages"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct page_range range;
        struct fathom_err err = {0};
        assert_int_equal(page_range_parse(&range, cases[i].text, 12, &err), FATHOM_EINVAL);
        assert_string_equal(err.message, cases[i].message);
        assert_null(range.spans);
    }
    struct page_range range;
    struct fathom_err err;
    assert_int_equal(page_range_parse(&range, "2", 1, &err), FATHOM_EINVAL);
    assert_string_equal(err.message, "pages '2' go past the end: the document has 1 page");
}

/* Without a document only the writing counts, and no page number is too large. */
static void test_unknown_document(void **state)
{
    static const char *const good[] = {"1", "5-7,900-", "18446744073709551615", "99999999999999999999999"};
    static const char *const bad[] = {"", "0", "3-2", "a", "1-2-"};
    struct page_range range;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(page_range_parse(&range, good[i], 0, NULL), FATHOM_OK);
        page_range_free(&range);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(page_range_parse(&range, bad[i], 0, NULL), FATHOM_EINVAL);
}

/* A million items, the same page and every other one: no quadratic time, no more pages than named. */
static void test_long(void **state)
{
    enum { n = 1000000 };
    char *text = malloc(n * 8 + 1);
    struct page_range range;
    size_t at = 0, count = 0;
    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        at += (size_t)sprintf(text + at, "%s%zu", i ? "," : "", i % 2 ? 1 : 999999 - i);
    assert_int_equal(page_range_parse(&range, text, n, NULL), FATHOM_OK);
    for (size_t page = page_range_next(&range, 0); page; page = page_range_next(&range, page))
        count++;
    assert_int_equal(count, n / 2);
    assert_int_equal(page_range_count(&range), n / 2);
    page_range_free(&range);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_unknown_document),
        cmocka_unit_test(test_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
