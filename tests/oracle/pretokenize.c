/* The scanner and its tables against PCRE2, which has the regular expressions and the same Unicode version. */
#include "text/pretokenize.h"
#include "base/json.h"
#include "base/mapfile.h"
#include "base/utf8.h"
#include "text/unicode.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static pcre2_code *compile(const char *regex)
{
    int error;
    size_t at;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP | PCRE2_DOTALL,
                                     &error, &at, NULL);
    assert_non_null(code);
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    return code;
}

static void need_unicode_14(void)
{
    char version[24];
    pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, version);
    if (strncmp(version, "14.", 3) != 0)
        skip();
}

static void test_every_code_point(void **state)
{
    (void)state;
    need_unicode_14();
    /* The group that matches is the class. */
    pcre2_code *code = compile("(\\p{L})|(\\p{M})|(\\p{N})|(\\p{P})|(\\p{S})|([\\p{Z}\\x09-\\x0d\\x{85}])|.");
    pcre2_match_data *match = pcre2_match_data_create_from_pattern(code, NULL);
    for (uint32_t c = 0; c < 0x110000; c++) {
        if (c >= 0xd800 && c <= 0xdfff)
            continue;
        char text[4];
        int n = pcre2_match(code, (PCRE2_SPTR)text, utf8_encode(c, text), 0, PCRE2_NO_UTF_CHECK, match, NULL);
        assert_true(n > 0);
        if ((int)unicode_class(c) != n - 1)
            fail_msg("U+%04X is of class %d, expected %d", (unsigned)c, (int)unicode_class(c), n - 1);
    }
    pcre2_match_data_free(match);
    pcre2_code_free(code);
}

struct splitter {
    pcre2_code *codes[3];
    pcre2_match_data *matches[3];
    size_t ends[4096]; /* of the pieces */
    size_t n;
};

/* Applies one split to [from, to) and the following ones to what it leaves. The part is matched as a text of its own. */
static void split(struct splitter *s, int step, const char *text, size_t from, size_t to)
{
    if (from == to)
        return;
    if (step == 3) {
        s->ends[s->n++] = to;
        return;
    }
    size_t at = from;
    while (pcre2_match(s->codes[step], (PCRE2_SPTR)text + from, to - from, at - from, PCRE2_NO_UTF_CHECK,
                       s->matches[step], NULL) > 0) {
        const size_t *found = pcre2_get_ovector_pointer(s->matches[step]);
        size_t start = from + found[0], end = from + found[1];
        split(s, step + 1, text, at, start);
        split(s, step + 1, text, start, end);
        at = end;
    }
    split(s, step + 1, text, at, to);
}

static void check(struct splitter *s, const char *text, size_t n)
{
    s->n = 0;
    split(s, 0, text, 0, n);
    size_t at = 0;
    for (size_t i = 0; i < s->n; i++) {
        at += pretoken_next(text + at, n - at);
        if (at != s->ends[i])
            fail_msg("piece %zu of '%.*s' ends at %zu, expected %zu", i, (int)n, text, at, s->ends[i]);
    }
    assert_int_equal(at, n);
}

/* The expressions as the tokenizer's own file has them. */
static int open_splitter(void **state)
{
    static struct splitter s;
    struct mapfile file;
    struct json j;
    if (mapfile_open(&file, "tests/golden/tokenizer.json", NULL) ||
        json_parse(&j, (const char *)file.data, file.size, NULL))
        return -1;
    const struct json_node *list = json_get(&j, json_get(&j, json_root(&j), "pre_tokenizer"), "pretokenizers"),
                           *step = json_first(&j, list);
    for (int i = 0; i < 3; i++, step = json_next(&j, list, step)) {
        s.codes[i] = compile(json_get(&j, json_get(&j, step, "pattern"), "Regex")->text);
        s.matches[i] = pcre2_match_data_create_from_pattern(s.codes[i], NULL);
    }
    json_free(&j);
    mapfile_close(&file);
    *state = &s;
    return 0;
}

static int close_splitter(void **state)
{
    struct splitter *s = *state;
    for (int i = 0; i < 3; i++) {
        pcre2_match_data_free(s->matches[i]);
        pcre2_code_free(s->codes[i]);
    }
    return 0;
}

static void test_random_texts(void **state)
{
    need_unicode_14();
    static const uint32_t likely[] = {
        'a',    'z',    'B',    '1',    '2',    ' ',    ' ',     '\n',    '\n',    '\r',    '\t',     '!',    '.',
        '\'',   '<',    '|',    '~',    '_',    0x00,   0x01,    0x7f,    0x85,    0xa0,    0xad,     0xe9,   0xb2,
        0x301,  0x378,  0x663,  0x2003, 0x200b, 0x2028, 0x2160,  0x2192,  0x3000,  0x3002,  0x303f,   0x3040, 0x304b,
        0x3099, 0x309b, 0x309f, 0x30a0, 0x30ab, 0x30fb, 0x30ff,  0x3100,  0x3105,  0x4dff,  0x4e00,   0x65e5, 0x9fa5,
        0x9fa6, 0xac00, 0xfeff, 0xff11, 0xff5c, 0xfffd, 0x1f600, 0x20000, 0x1d7d8, 0xe0100, 0x10ffff,
    };
    unsigned seed = 11;
    for (int round = 0; round < 300000; round++) {
        char text[4 * 64];
        size_t n = 0, n_characters = (size_t)rand_r(&seed) % (round % 16 ? 10 : 64);
        size_t first = (size_t)rand_r(&seed) % (sizeof likely / sizeof *likely), width = 1 + (size_t)rand_r(&seed) % 63;
        for (size_t i = 0; i < n_characters; i++) {
            uint32_t c = likely[(first + (size_t)rand_r(&seed) % width) % (sizeof likely / sizeof *likely)];
            if (rand_r(&seed) % 16 == 0)
                c = (uint32_t)rand_r(&seed) % 0x110000;
            /* PCRE2 counts U+180E as white space, where it no longer is. */
            if ((c >= 0xd800 && c <= 0xdfff) || c == 0x180e)
                c = 'x';
            n += utf8_encode(c, text + n);
        }
        check(*state, text, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_point),
        cmocka_unit_test(test_random_texts),
    };
    return cmocka_run_group_tests(tests, open_splitter, close_splitter);
}
