#include "base/json.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT(s)                                                                                                        \
    {                                                                                                                  \
        s, sizeof(s) - 1                                                                                               \
    }

struct text {
    const char *p;
    size_t n;
};

static const struct text accepted[] = {
    TEXT("{}"),
    TEXT("[]"),
    TEXT(" [ ] "),
    TEXT("\t\r\n[]\n"),
    TEXT("null"),
    TEXT("true"),
    TEXT("false"),
    TEXT("0"),
    TEXT("-0"),
    TEXT("-0.0"),
    TEXT("1e5"),
    TEXT("1E+5"),
    TEXT("1.25e-5"),
    TEXT("123456789012345678901234567890"),
    TEXT("1e400"),
    TEXT("\"\""),
    TEXT("\"\x7f\""),
    TEXT("\"\\u0000\""),
    TEXT("\"\\ud83d\\ude00\""),
    TEXT("\"\\uD83D\\uDE00\""),
    TEXT("\"\\uffff\""),
    TEXT("\"\xf0\x9f\x98\x80\""),
    TEXT("\"\xf4\x8f\xbf\xbf\""),
    TEXT("\"\xed\x9f\xbf\xee\x80\x80\""),
    TEXT("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]"),
    TEXT("{\"\":0}"),
    TEXT("{\"a\":{\"a\":1},\"b\":[{\"a\":1},{\"a\":2}]}"),
    TEXT("[[],[[]],{},{\"a\":[]}]"),
    TEXT("[1,2.5,\"x\",null,true,false,{},[]]"),
};

static const struct text refused[] = {
    TEXT(""),
    TEXT(" "),
    TEXT("["),
    TEXT("]"),
    TEXT("{"),
    TEXT("}"),
    TEXT("[}"),
    TEXT("{]"),
    TEXT("[1"),
    TEXT("[1,"),
    TEXT("[1,]"),
    TEXT("[,1]"),
    TEXT("[,]"),
    TEXT("[1 2]"),
    TEXT("[1:2]"),
    TEXT("[1]]"),
    TEXT("[1]x"),
    TEXT("1 2"),
    TEXT("{\"a\"}"),
    TEXT("{\"a\":}"),
    TEXT("{\"a\" 1}"),
    TEXT("{\"a\":1,}"),
    TEXT("{,\"a\":1}"),
    TEXT("{\"a\":1 \"b\":2}"),
    TEXT("{\"a\":1,,\"b\":2}"),
    TEXT("{a:1}"),
    TEXT("{1:1}"),
    TEXT("{'a':1}"),
    TEXT("{\"a\":1"),
    TEXT("{\"a\":"),
    TEXT("{\"a\""),
    TEXT("{\"a"),
    TEXT("{\"a\":1,\"a\":2}"),
    TEXT("{\"a\":1,\"\\u0061\":2}"),
    TEXT("{\"a\":1,\"b\":{},\"a\":2}"),
    TEXT("nul"),
    TEXT("nullx"),
    TEXT("True"),
    TEXT("NaN"),
    TEXT("Infinity"),
    TEXT("-Infinity"),
    TEXT("-"),
    TEXT("+1"),
    TEXT(".5"),
    TEXT("1."),
    TEXT("1.e5"),
    TEXT("01"),
    TEXT("-01"),
    TEXT("0x10"),
    TEXT("1e"),
    TEXT("1e+"),
    TEXT("--1"),
    TEXT("1.2.3"),
    TEXT("\""),
    TEXT("\"a"),
    TEXT("\"\\"),
    TEXT("\"\\\""),
    TEXT("\"\\x\""),
    TEXT("\"\\a\""),
    TEXT("\"\\u\""),
    TEXT("\"\\u12\""),
    TEXT("\"\\u12g4\""),
    TEXT("\"\\u+123\""),
    TEXT("\"\\ud800\""),
    TEXT("\"\\udc00\""),
    TEXT("\"\\udc00\\udc00\""),
    TEXT("\"\\ud800\\u0041\""),
    TEXT("\"\\ud800\\ud800\""),
    TEXT("\"\\ud800x\""),
    TEXT("\"\\ud83d\\ude0\""),
    TEXT("\"\n\""),
    TEXT("\"\0\""),
    TEXT("\"1234567\n\""),
    TEXT("[1\0]"),
    TEXT("[]\0"),
    TEXT("\"\x80\""),
    TEXT("\"\xc0\x80\""),
    TEXT("\"\xc1\xbf\""),
    TEXT("\"\xe0\x9f\xbf\""),
    TEXT("\"\xed\xa0\x80\""),
    TEXT("\"\xf0\x8f\xbf\xbf\""),
    TEXT("\"\xf4\x90\x80\x80\""),
    TEXT("\"\xf5\x80\x80\x80\""),
    TEXT("\"\xff\""),
    TEXT("\"\xc3\""),
    TEXT("\"\xe2\x82\""),
    TEXT("\"\xe2\x82"),
    TEXT("\xef\xbb\xbf[]"),
    TEXT("/* */ 1"),
    TEXT("[1] // x"),
    TEXT("\f[]"),
    TEXT("\xc2\xa0[]"),
};

/* From a block of exactly n bytes, so that a sanitizer sees any read beyond the text. */
static enum fathom_status parse(struct json *j, const char *text, size_t n, struct fathom_err *err)
{
    char *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    memcpy(copy, text, n);
    enum fathom_status status = json_parse(j, copy, n, err);
    free(copy);
    return status;
}

static void test_accepts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        struct json j;
        struct fathom_err err;
        if (parse(&j, accepted[i].p, accepted[i].n, &err))
            fail_msg("refused: %s: %s", accepted[i].p, err.message);
        assert_int_equal(json_root(&j)->end, j.n_nodes);
        json_free(&j);
    }
}

static void test_refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct json j;
        struct fathom_err err = {0};
        if (!parse(&j, refused[i].p, refused[i].n, &err))
            fail_msg("accepted: %s", refused[i].p);
        assert_int_equal(err.status, FATHOM_EFORMAT);
        assert_true(err.message[0] != 0);
        assert_null(j.nodes);
    }
}

static void test_every_prefix_is_refused(void **state)
{
    (void)state;
    const char *text = "{\"a\":[1,-2.5e3,\"\\ud83d\\ude00\\n\xe2\x82\xac\",true],\"b\":{\"c\":null}}";
    struct json j;
    for (size_t n = 0; n < strlen(text); n++)
        assert_int_equal(parse(&j, text, n, NULL), FATHOM_EFORMAT);
    assert_int_equal(parse(&j, text, strlen(text), NULL), FATHOM_OK);
    json_free(&j);
}

static void test_says_where(void **state)
{
    (void)state;
    struct json j;
    struct fathom_err err;
    const char *text = "{\n  \"a\": 1,\n  \"b\" 2\n}";
    assert_int_equal(parse(&j, text, strlen(text), &err), FATHOM_EFORMAT);
    assert_string_equal(err.message, "key without a colon in JSON, line 3, byte 7");
    text = "{\"name\": 1, \"name\": 2}";
    assert_int_equal(parse(&j, text, strlen(text), &err), FATHOM_EFORMAT);
    assert_non_null(strstr(err.message, "\"name\""));
}

static void test_walks(void **state)
{
    (void)state;
    const char *text = "{\"list\":[[1,2],\"x\",{}],\"n\":-7,\"s\":\"a\\u0000b\",\"empty\":[]}";
    struct json j;
    assert_int_equal(parse(&j, text, strlen(text), NULL), FATHOM_OK);
    const struct json_node *root = json_root(&j), *list = json_get(&j, root, "list");
    assert_int_equal(root->type, JSON_OBJECT);
    assert_int_equal(root->n, 4);
    assert_int_equal(list->n, 3);

    const struct json_node *item = json_first(&j, list);
    assert_int_equal(item->type, JSON_ARRAY);
    assert_int_equal(item->n, 2);
    item = json_next(&j, list, item);
    assert_true(json_is_string(item, "x"));
    assert_false(json_is_string(item, "xy"));
    item = json_next(&j, list, item);
    assert_int_equal(item->type, JSON_OBJECT);
    assert_null(json_first(&j, item));
    assert_null(json_next(&j, list, item));
    assert_null(json_first(&j, json_get(&j, root, "empty")));

    const struct json_node *s = json_get(&j, root, "s");
    assert_int_equal(s->n_text, 3);
    assert_memory_equal(s->text, "a\0b", 4);
    assert_false(json_is_string(s, "a"));

    size_t n = 0;
    for (const struct json_node *c = json_first(&j, root); c; c = json_next(&j, root, c))
        n++;
    assert_int_equal(n, 8);

    assert_null(json_get(&j, root, "absent"));
    assert_null(json_get(&j, list, "list"));
    assert_null(json_get(&j, NULL, "list"));
    assert_null(json_first(&j, NULL));
    json_free(&j);
    json_free(&j);
}

static void test_strings(void **state)
{
    (void)state;
    const char *text = "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\", \"\\u20ac\\ud834\\udd1e\\u00e9\", \"long enough for words "
                       "\\n and then "
                       "\xe6\x97\xa5\xe6\x9c\xac "
                       "some\"]";
    const char *expected[] = {"\"\\/\b\f\n\r\t", "\xe2\x82\xac\xf0\x9d\x84\x9e\xc3\xa9",
                              "long enough for words \n and then \xe6\x97\xa5\xe6\x9c\xac some"};
    struct json j;
    assert_int_equal(parse(&j, text, strlen(text), NULL), FATHOM_OK);
    int i = 0;
    for (const struct json_node *c = json_first(&j, json_root(&j)); c; c = json_next(&j, json_root(&j), c), i++) {
        assert_string_equal(c->text, expected[i]);
        assert_int_equal(c->n_text, strlen(expected[i]));
    }
    json_free(&j);
}

static void test_i64(void **state)
{
    (void)state;
    const struct {
        const char *text;
        bool ok;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"42", true, 42},
        {"9223372036854775807", true, INT64_MAX},
        {"9223372036854775808", false, 0},
        {"-9223372036854775808", true, INT64_MIN},
        {"-9223372036854775809", false, 0},
        {"100000000000000000000000000", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
        {"\"1\"", false, 0},
        {"null", false, 0},
        {"[1]", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct json j;
        int64_t value = 0;
        assert_int_equal(parse(&j, cases[i].text, strlen(cases[i].text), NULL), FATHOM_OK);
        assert_int_equal(json_i64(json_root(&j), &value), cases[i].ok);
        assert_true(value == cases[i].value);
        json_free(&j);
    }
    int64_t value;
    assert_false(json_i64(NULL, &value));
}

static void test_f64(void **state)
{
    (void)state;
    const struct {
        const char *text;
        bool ok;
        double value;
    } cases[] = {
        {"0", true, 0},         {"1e-6", true, 1e-6},   {"-2.5E+3", true, -2500},
        {"1e308", true, 1e308}, {"1e309", false, 0},    {"-1e999999999999", false, 0},
        {"1e-400", true, 0},    {"\"1\"", false, 0},    {"3.7362", true, 3.7362},
        {"true", false, 0},     {"10000", true, 10000},
    };
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct json j;
            double value = 0;
            assert_int_equal(parse(&j, cases[i].text, strlen(cases[i].text), NULL), FATHOM_OK);
            assert_int_equal(json_f64(json_root(&j), &value), cases[i].ok);
            assert_true(value == cases[i].value);
            json_free(&j);
        }
        setlocale(LC_ALL, "de_DE.UTF-8"); /* where it is installed, numbers have a decimal comma */
    }
    setlocale(LC_ALL, "C");
    double value;
    assert_false(json_f64(NULL, &value));
}

/* depth opening brackets, then as many closing ones. */
static char *nested(size_t depth, char open, char close)
{
    char *text = malloc(2 * depth);
    assert_non_null(text);
    memset(text, open, depth);
    memset(text + depth, close, depth);
    return text;
}

static void test_depth(void **state)
{
    (void)state;
    struct json j;
    char *text = nested(128, '[', ']');
    assert_int_equal(json_parse(&j, text, 256, NULL), FATHOM_OK);
    json_free(&j);
    free(text);
    text = nested(129, '[', ']');
    assert_int_equal(json_parse(&j, text, 258, NULL), FATHOM_ELIMIT);
    free(text);
    text = nested(10000000, '[', ']');
    assert_int_equal(json_parse(&j, text, 20000000, NULL), FATHOM_ELIMIT);
    free(text);
}

static void test_large_object(void **state)
{
    (void)state;
    const int n = 200000;
    char *text = malloc((size_t)n * 24 + 64);
    assert_non_null(text);
    size_t at = 0;
    text[at++] = '{';
    for (int i = 0; i < n; i++)
        at += (size_t)sprintf(text + at, "%s\"key%d\":%d", i ? "," : "", i, i);
    text[at] = '}';
    struct json j;
    assert_int_equal(parse(&j, text, at + 1, NULL), FATHOM_OK);
    int64_t value;
    assert_true(json_i64(json_get(&j, json_root(&j), "key199999"), &value));
    assert_int_equal(value, 199999);
    json_free(&j);

    struct fathom_err err;
    at += (size_t)sprintf(text + at, ",\"key77777\":1}");
    assert_int_equal(parse(&j, text, at, &err), FATHOM_EFORMAT);
    assert_non_null(strstr(err.message, "\"key77777\""));
    free(text);
}

static void test_long_number(void **state)
{
    (void)state;
    const size_t n = 1000000;
    char *text = malloc(n);
    assert_non_null(text);
    memset(text, '9', n);
    struct json j;
    int64_t i;
    double d;
    assert_int_equal(parse(&j, text, n, NULL), FATHOM_OK);
    assert_int_equal(json_root(&j)->n_text, n);
    assert_false(json_i64(json_root(&j), &i));
    assert_false(json_f64(json_root(&j), &d));
    json_free(&j);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepts),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_every_prefix_is_refused),
        cmocka_unit_test(test_says_where),
        cmocka_unit_test(test_walks),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_i64),
        cmocka_unit_test(test_f64),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_large_object),
        cmocka_unit_test(test_long_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
