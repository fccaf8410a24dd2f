#include "text/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tokenizer_json.h"

static enum fathom_status parse(struct tokenizer **tok, struct tokenizer_json parts, struct fathom_err *err)
{
    struct strbuf s = {0};
    tokenizer_json_write(&s, &parts);
    assert_false(s.failed);
    enum fathom_status status = tokenizer_parse(tok, s.text, s.n, err);
    strbuf_free(&s);
    return status;
}

static struct tokenizer *must_parse(struct tokenizer_json parts)
{
    struct tokenizer *tok;
    struct fathom_err err;
    if (parse(&tok, parts, &err))
        fail_msg("%s", err.message);
    return tok;
}

/* Encodes and compares with a list of ids that ends in -1. */
static void check_ids(const struct tokenizer *tok, const char *text, size_t n, bool parse_special, const int32_t *ids)
{
    struct tokens out = {0};
    assert_int_equal(tokenizer_encode(tok, text, n, parse_special, &out, NULL), FATHOM_OK);
    size_t i = 0;
    for (; ids[i] >= 0; i++) {
        assert_true(i < out.n);
        assert_int_equal(out.ids[i], ids[i]);
    }
    assert_int_equal(out.n, i);
    tokens_free(&out);
}

#define IDS(...) ((const int32_t[]){__VA_ARGS__, -1})

static const struct tokenizer_json abc = {
    .vocab = ",\"ab\":256,\"bc\":257,\"abc\":258,\"\u0120a\":259",
    .merges = "\"a b\",\"b c\",\"ab c\",\"\u0120 a\"",
};

static void test_merges_go_by_rank(void **state)
{
    (void)state;
    struct tokenizer *tok = must_parse(abc);
    check_ids(tok, "abc", 3, true, IDS(258));
    check_ids(tok, "bc", 2, true, IDS(257));
    check_ids(tok, "bbc", 3, true, IDS('b', 257));
    check_ids(tok, "abab", 4, true, IDS(256, 256));
    check_ids(tok, "c abc", 5, true, IDS('c', ' ', 258)); /* "a b" goes before " a" */
    check_ids(tok, "c ac", 4, true, IDS('c', 259, 'c'));
    check_ids(tok, "", 0, true, (const int32_t[]){-1});
    assert_int_equal(tokenizer_size(tok), 260);
    tokenizer_close(tok);
}

static void test_both_dialects_are_equal(void **state)
{
    (void)state;
    struct tokenizer_json pairs = abc;
    pairs.merges = "[\"a\",\"b\"],[\"b\",\"c\"],[\"ab\",\"c\"],[\"\\u0120\",\"a\"]";
    pairs.pre_tokenizer =
        SEQUENCE(NUMBERS "," SPLIT("[\\u4e00-\\u9fa5\\\\u3040-\\\\u309F\\\\x{30A0}-\\\\x{30FF}]+") "," SPLIT(
            "[!\\\"#$%&'()*+,\\\\-./"
            ":;<=>?@\\\\[\\\\\\\\\\\\]^_`{|}~][A-Za-z]+|[^\\\\r\\\\n\\\\p{L}\\\\p{P}\\\\p{S}]?"
            "[\\\\p{L}\\\\p{M}]+| "
            "?[\\\\p{P}\\\\p{S}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+") "," BYTE_LEVEL);
    struct tokenizer *tok = must_parse(pairs);
    check_ids(tok, "abc", 3, true, IDS(258));
    check_ids(tok, "c ac", 4, true, IDS('c', 259, 'c'));
    tokenizer_close(tok);
}

static void test_bytes(void **state)
{
    (void)state;
    struct tokenizer *tok = must_parse((struct tokenizer_json){0});
    for (int byte = 0; byte < 256; byte++) {
        char c = (char)byte;
        size_t n;
        check_ids(tok, &c, 1, true, IDS(byte));
        const char *piece = tokenizer_piece(tok, byte, &n);
        assert_int_equal(n, 1);
        assert_int_equal((unsigned char)*piece, byte);
    }
    const char broken[] = "a\xc3\xffz\xe2\x82";
    check_ids(tok, broken, sizeof broken - 1, true, IDS('a', 0xc3, 0xff, 'z', 0xe2, 0x82));
    tokenizer_close(tok);
}

#define ADDED(id, text, normalized, special)                                                                           \
    "{\"id\":" #id ",\"content\":\"" text                                                                              \
    "\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":" #normalized ",\"special\":" #special  \
    "}"

static void test_added_tokens(void **state)
{
    (void)state;
    struct tokenizer *tok = must_parse((struct tokenizer_json){
        .vocab = ",\"<x>\":256",
        .added = ADDED(256, "<x>", false, true) "," ADDED(300, "<x>y", false, true) "," ADDED(
            301, "y<", true, false) "," ADDED(302, "<｜z｜>", true, true) "," ADDED(60, "<", false, false),
    });
    assert_int_equal(tokenizer_size(tok), 303);
    check_ids(tok, "<x>", 3, true, IDS(256));
    check_ids(tok, "<x>y", 4, true, IDS(300)); /* the longest wins */
    check_ids(tok, "a<x>b", 5, true, IDS('a', 256, 'b'));
    check_ids(tok, "y<x>", 4, true, IDS('y', 256)); /* "y<" starts earlier, but normalised ones come second */
    check_ids(tok, "y<", 2, true, IDS('y', '<'));
    check_ids(tok, "<x", 2, true, IDS('<', 'x'));
    check_ids(tok, "<x>", 3, false, IDS('<', 'x', '>'));
    check_ids(tok, "<x><x>y<", 8, true, IDS(256, 300, '<'));
    assert_int_equal(tokenizer_find(tok, "<x>"), 256);
    assert_int_equal(tokenizer_find(tok, "<x>y"), 300);
    assert_int_equal(tokenizer_find(tok, "<｜z｜>"), 302);
    assert_int_equal(tokenizer_find(tok, "a"), 'a');
    assert_int_equal(tokenizer_find(tok, "\n"), '\n');
    assert_int_equal(tokenizer_find(tok, "<y>"), -1);
    assert_int_equal(tokenizer_find(tok, ""), -1);
    assert_true(tokenizer_is_special(tok, 256));
    assert_false(tokenizer_is_special(tok, 301));
    assert_false(tokenizer_is_special(tok, 'a'));
    assert_false(tokenizer_is_special(tok, -1));
    assert_false(tokenizer_is_special(tok, 303));
    size_t n;
    const char *piece = tokenizer_piece(tok, 302, &n);
    assert_int_equal(n, 9);
    assert_memory_equal(piece, "<｜z｜>", 9);
    tokenizer_piece(tok, 299, &n); /* a gap */
    assert_int_equal(n, 0);
    tokenizer_piece(tok, -5, &n);
    assert_int_equal(n, 0);
    tokenizer_piece(tok, INT32_MAX, &n);
    assert_int_equal(n, 0);
    tokenizer_close(tok);
}

/* A vocabulary text with characters that stand for no byte is its own text. */
static void test_vocabulary_text_that_is_no_bytes(void **state)
{
    (void)state;
    struct tokenizer *tok = must_parse((struct tokenizer_json){.vocab = ",\"<｜x▁y｜>\":256"});
    size_t n;
    const char *piece = tokenizer_piece(tok, 256, &n);
    assert_int_equal(n, strlen("<｜x▁y｜>"));
    assert_memory_equal(piece, "<｜x▁y｜>", n);
    tokenizer_close(tok);
}

static void test_a_later_merge_of_the_same_pair_counts(void **state)
{
    (void)state;
    struct tokenizer *tok = must_parse((struct tokenizer_json){
        .vocab = ",\"ab\":256,\"bc\":257",
        .merges = "\"a b\",\"b c\",\"a b\"",
    });
    check_ids(tok, "abc", 3, true, IDS('a', 257));
    tokenizer_close(tok);
}

static void test_refuses(void **state)
{
    (void)state;
    const struct {
        struct tokenizer_json parts;
        enum fathom_status status;
        const char *says;
    } cases[] = {
        {{.vocab = ",\"ab\":97"}, FATHOM_EFORMAT, "same id 97"},
        {{.vocab = ",\"ab\":-1"}, FATHOM_EFORMAT, "'ab'"},
        {{.vocab = ",\"ab\":1.5"}, FATHOM_EFORMAT, "'ab'"},
        {{.vocab = ",\"ab\":\"256\""}, FATHOM_EFORMAT, "'ab'"},
        {{.vocab = ",\"ab\":[[256]]"}, FATHOM_EFORMAT, "'ab'"},
        {{.vocab = ",\"ab\":4194304"}, FATHOM_ELIMIT, "'ab'"},
        {{.vocab = ",\"ab\":99999999999999999999"}, FATHOM_EFORMAT, "'ab'"},
        {{.vocab = ",\"\":256"}, FATHOM_EFORMAT, "token 256 is empty"},
        {{.vocab = ",\"a\":256"}, FATHOM_EFORMAT, "\"a\" twice"},
        {{.merges = "\"a b\""}, FATHOM_EFORMAT, "merge 0 of 'a' and 'b'"},
        {{.vocab = ",\"ab\":256", .merges = "\"a b\",\"ab ?c\""}, FATHOM_EFORMAT, "merge 1"},
        {{.merges = "\"a \""}, FATHOM_EFORMAT, "merge 0"},
        {{.merges = "\" a\""}, FATHOM_EFORMAT, "merge 0"},
        {{.merges = "\"ab\""}, FATHOM_EFORMAT, "merge 0"},
        {{.merges = "\"a b c\""}, FATHOM_EFORMAT, "merge 0"},
        {{.merges = "\"\""}, FATHOM_EFORMAT, "merge 0"},
        {{.merges = "[]"}, FATHOM_EFORMAT, "merge 0"},
        {{.merges = "[\"a\"]"}, FATHOM_EFORMAT, "merge 0"},
        {{.merges = "[\"a\",1]"}, FATHOM_EFORMAT, "merge 0"},
        {{.merges = "[\"a\",\"\"]"}, FATHOM_EFORMAT, "merge 0"},
        {{.merges = "[\"a\",\"b\",\"c\"]"}, FATHOM_EFORMAT, "merge 0"},
        {{.merges = "7"}, FATHOM_EFORMAT, "merge 0"},
        {{.merges = "{\"a\":\"b\"}"}, FATHOM_EFORMAT, "merge 0"},
        {{.merges = "\"a \xff\""}, FATHOM_EFORMAT, "UTF-8"},
        {{.added = "7"}, FATHOM_EFORMAT, "added token"},
        {{.added = "{}"}, FATHOM_EFORMAT, "added token"},
        {{.added = "{\"content\":\"x\"}"}, FATHOM_EFORMAT, "'x'"},
        {{.added = "{\"content\":7,\"id\":256}"}, FATHOM_EFORMAT, "added token"},
        {{.added = ADDED(256, "", false, true)}, FATHOM_EFORMAT, "256 is empty"},
        {{.added = ADDED(-1, "x", false, true)}, FATHOM_EFORMAT, "'x'"},
        {{.added = ADDED(1e3, "x", false, true)}, FATHOM_EFORMAT, "'x'"},
        {{.added = ADDED(4194304, "x", false, true)}, FATHOM_ELIMIT, "'x'"},
        {{.added = ADDED(97, "<x>", false, true)}, FATHOM_EFORMAT, "'<x>' has the id 97"},
        {{.added = ADDED(256, "a", false, true)}, FATHOM_EFORMAT, "97 in the vocabulary"},
        {{.added = ADDED(256, "<x>", false, true) "," ADDED(256, "<x>", false, true)}, FATHOM_EFORMAT, "'<x>'"},
        {{.added = ADDED(256, "<x>", false, true) "," ADDED(257, "<x>", false, true)}, FATHOM_EFORMAT, "twice"},
        {{.added = ADDED(256, "<x>", false, true) "," ADDED(257, "<x>", true, true)}, FATHOM_EFORMAT, "twice"},
        {{.added = "{\"id\":256,\"content\":\"x\",\"lstrip\":true}"}, FATHOM_EUNSUPPORTED, "lstrip"},
        {{.added = "{\"id\":256,\"content\":\"x\",\"rstrip\":true}"}, FATHOM_EUNSUPPORTED, "rstrip"},
        {{.added = "{\"id\":256,\"content\":\"x\",\"single_word\":true}"}, FATHOM_EUNSUPPORTED, "single_word"},
        {{.model = "\"byte_fallback\":true,"}, FATHOM_EUNSUPPORTED, "byte_fallback"},
        {{.model = "\"ignore_merges\":true,"}, FATHOM_EUNSUPPORTED, "ignore_merges"},
        {{.model = "\"dropout\":0.1,"}, FATHOM_EUNSUPPORTED, "dropout"},
        {{.model = "\"end_of_word_suffix\":\"</w>\","}, FATHOM_EUNSUPPORTED, "suffix"},
        {{.model = "\"continuing_subword_prefix\":\"##\","}, FATHOM_EUNSUPPORTED, "prefix"},
        {{.top = "\"normalizer\":{\"type\":\"NFC\"},"}, FATHOM_EUNSUPPORTED, "normalizer"},
        {{.top = "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"}]},"},
         FATHOM_EUNSUPPORTED,
         "normalizer"},
        {{.pre_tokenizer = "null"}, FATHOM_EUNSUPPORTED, "pre_tokenizer"},
        {{.pre_tokenizer = "7"}, FATHOM_EUNSUPPORTED, "pre_tokenizer"},
        {{.pre_tokenizer = "{\"type\":\"Metaspace\"}"}, FATHOM_EUNSUPPORTED, "pre_tokenizer"},
        {{.pre_tokenizer = BYTE_LEVEL}, FATHOM_EUNSUPPORTED, "pre_tokenizer"},
        {{.pre_tokenizer = SEQUENCE(WORDS "," BYTE_LEVEL)}, FATHOM_EUNSUPPORTED, "pre_tokenizer"},
        {{.pre_tokenizer = SEQUENCE(NUMBERS "," WORDS "," IDEOGRAPHS "," BYTE_LEVEL)}, FATHOM_EUNSUPPORTED, "pre_"},
        {{.pre_tokenizer = SEQUENCE(SPLIT("\\\\p{N}") "," IDEOGRAPHS "," WORDS "," BYTE_LEVEL)},
         FATHOM_EUNSUPPORTED,
         "pre_tokenizer"},
        {{.pre_tokenizer = SEQUENCE(NUMBERS "," IDEOGRAPHS "," WORDS ",{\"type\":\"ByteLevel\"}")},
         FATHOM_EUNSUPPORTED,
         "pre_tokenizer"},
        {{.pre_tokenizer = SEQUENCE(NUMBERS "," IDEOGRAPHS "," WORDS ",7")}, FATHOM_EUNSUPPORTED, "pre_tokenizer"},
        {{.pre_tokenizer = SEQUENCE("1,2,3,4")}, FATHOM_EUNSUPPORTED, "pre_tokenizer"},
        {{.pre_tokenizer = SEQUENCE(NUMBERS ",{\"type\":\"Digits\"}," WORDS "," BYTE_LEVEL)},
         FATHOM_EUNSUPPORTED,
         "pre_tokenizer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tokenizer *tok;
        struct fathom_err err = {0};
        enum fathom_status status = parse(&tok, cases[i].parts, &err);
        if (status != cases[i].status || !strstr(err.message, cases[i].says))
            fail_msg("case %zu: %s: '%s', expected %s: '%s'", i, fathom_status_name(status), err.message,
                     fathom_status_name(cases[i].status), cases[i].says);
        assert_null(tok);
    }
}

static void test_refuses_what_is_no_tokenizer(void **state)
{
    (void)state;
    const struct {
        const char *text;
        enum fathom_status status;
    } cases[] = {
        {"", FATHOM_EFORMAT},
        {"{", FATHOM_EFORMAT},
        {"[]", FATHOM_EFORMAT},
        {"null", FATHOM_EFORMAT},
        {"{}", FATHOM_EFORMAT},
        {"{\"model\":7}", FATHOM_EFORMAT},
        {"{\"model\":{\"type\":\"Unigram\"}}", FATHOM_EUNSUPPORTED},
        {"{\"model\":{\"type\":\"BPE\"}}", FATHOM_EUNSUPPORTED},
        {"{\"model\":{},\"pre_tokenizer\":" SEQUENCE(NUMBERS "," IDEOGRAPHS "," WORDS "," BYTE_LEVEL) "}",
         FATHOM_EFORMAT},
        {"{\"model\":{\"vocab\":{},\"merges\":[]},\"pre_tokenizer\":" SEQUENCE(NUMBERS "," IDEOGRAPHS "," WORDS
                                                                                       "," BYTE_LEVEL) "}",
         FATHOM_EFORMAT},
        {"{\"model\":{\"vocab\":[],\"merges\":{}},\"pre_tokenizer\":" SEQUENCE(NUMBERS "," IDEOGRAPHS "," WORDS
                                                                                       "," BYTE_LEVEL) "}",
         FATHOM_EFORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tokenizer *tok;
        struct fathom_err err = {0};
        assert_int_equal(tokenizer_parse(&tok, cases[i].text, strlen(cases[i].text), &err), cases[i].status);
        assert_true(err.message[0] != 0);
        assert_null(tok);
    }
}

static void test_open_names_the_file(void **state)
{
    (void)state;
    struct tokenizer *tok;
    struct fathom_err err = {0};
    assert_int_equal(tokenizer_open(&tok, "tests/unit/tokenizer.c", &err), FATHOM_EFORMAT);
    assert_non_null(strstr(err.message, "tests/unit/tokenizer.c"));
    assert_int_equal(tokenizer_open(&tok, "tests/unit/no-such-file", &err), FATHOM_EIO);
    assert_int_equal(tokenizer_open(&tok, "tests/unit", &err), FATHOM_EIO);
    assert_null(tok);
    tokenizer_close(NULL);
}

/* A chain in which every merge makes a token twice as long: the longest word there is for the merges. */
static void test_deep_merges(void **state)
{
    (void)state;
    struct strbuf vocab = {0}, merges = {0};
    char text[2049], half[1025];
    memset(text, 'a', sizeof text);
    memset(half, 'a', sizeof half);
    for (int i = 1; i <= 11; i++) {
        strbuf_addf(&vocab, ",\"%.*s\":%d", 1 << i, text, 255 + i);
        strbuf_addf(&merges, "%s\"%.*s %.*s\"", i > 1 ? "," : "", 1 << (i - 1), half, 1 << (i - 1), half);
    }
    struct tokenizer *tok = must_parse((struct tokenizer_json){.vocab = vocab.text, .merges = merges.text});
    const size_t n = 1 << 20;
    char *word = malloc(n + 1);
    assert_non_null(word);
    memset(word, 'a', n + 1);
    struct tokens out = {0};
    assert_int_equal(tokenizer_encode(tok, word, n + 1, true, &out, NULL), FATHOM_OK);
    assert_int_equal(out.n, n / 2048 + 1);
    assert_int_equal(out.ids[0], 266);
    assert_int_equal(out.ids[n / 2048], 'a');
    tokens_free(&out);
    free(word);
    tokenizer_close(tok);
    strbuf_free(&vocab);
    strbuf_free(&merges);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merges_go_by_rank),
        cmocka_unit_test(test_both_dialects_are_equal),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_added_tokens),
        cmocka_unit_test(test_vocabulary_text_that_is_no_bytes),
        cmocka_unit_test(test_a_later_merge_of_the_same_pair_counts),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_refuses_what_is_no_tokenizer),
        cmocka_unit_test(test_open_names_the_file),
        cmocka_unit_test(test_deep_merges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
