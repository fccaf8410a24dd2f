#include "text/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"

#define BAD "\xef\xbf\xbd"

static const struct {
    const char *bytes, *shown;
} cases[] = {
    {"", ""},
    {"plain", "plain"},
    {"é日😀", "é日😀"},
    {"\x80", BAD},
    {"\x80\x80\x80\x80\x80", BAD BAD BAD BAD BAD},
    {"\xff\xfe", BAD BAD},
    {"\xc0\xaf", BAD BAD},                 /* overlong                                        */
    {"\xe0\x80\xaf", BAD BAD BAD},         /* overlong: the second byte already cannot follow */
    {"\xed\xa0\x80", BAD BAD BAD},         /* a surrogate                                     */
    {"\xf4\x90\x80\x80", BAD BAD BAD BAD}, /* above U+10FFFF                              */
    {"\xf5\x80", BAD BAD},
    {"\xe2\x82", BAD}, /* cut off: one for all that belongs together      */
    {"\xf0\x9f\x98", BAD},
    {"\xe2\x82z", BAD "z"},
    {"\xe2\x82\xe2\x82\xac", BAD "€"},
    {"\xc3\xc3\xa9", BAD "é"},
    {"\xf0\x9f\xf0\x9f\x98\x80", BAD "😀"},
    {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
    {"\xef\xbb\xbf", "\xef\xbb\xbf"},
};

/* All ways to cut up to 8 bytes into pieces, one bit for each place, and no piece may need more room than promised. */
static void test_any_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *bytes = cases[i].bytes;
        size_t n = strlen(bytes);
        for (unsigned cuts = 0; cuts < 1u << (n ? n - 1 : 0) && cuts < 1u << 12; cuts++) {
            struct detokenizer d = {0};
            char shown[128];
            size_t n_shown = 0;
            for (size_t from = 0, to; from < n; from = to) {
                for (to = from + 1; to < n && !(cuts >> (to - 1) & 1); to++)
                    ;
                size_t written = detokenizer_push(&d, bytes + from, to - from, shown + n_shown);
                assert_true(written <= 3 * (to - from) + 3);
                n_shown += written;
            }
            n_shown += detokenizer_push(&d, NULL, 0, shown + n_shown);
            assert_int_equal(n_shown, strlen(cases[i].shown));
            assert_memory_equal(shown, cases[i].shown, n_shown);
        }
    }
}

/* Random bytes, many of them parts of characters: any cut shows the same, and what is shown is valid. */
static void test_random_bytes(void **state)
{
    (void)state;
    static const unsigned char likely[] = {'a',  0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
                                           0xc2, 0xe0, 0xe2, 0xed, 0xef, 0xf0, 0xf4};
    unsigned seed = 1;
    for (int round = 0; round < 20000; round++) {
        char bytes[40], whole[3 * sizeof bytes + 6], parts[3 * sizeof bytes + 6];
        size_t n = (size_t)rand_r(&seed) % sizeof bytes, n_whole, n_parts = 0;
        for (size_t i = 0; i < n; i++)
            bytes[i] = (char)(rand_r(&seed) % 8 ? likely[(size_t)rand_r(&seed) % sizeof likely] : rand_r(&seed) & 0xff);
        struct detokenizer d = {0};
        n_whole = detokenizer_push(&d, bytes, n, whole);
        n_whole += detokenizer_push(&d, NULL, 0, whole + n_whole);
        for (size_t at = 0, piece; at < n; at += piece) {
            piece = 1 + (size_t)rand_r(&seed) % (n - at);
            n_parts += detokenizer_push(&d, bytes + at, piece, parts + n_parts);
            uint32_t code;
            for (size_t i = 0, length; i < n_parts; i += length) /* whole characters at any time */
                assert_true((length = utf8_decode(parts + i, n_parts - i, &code)) > 0);
        }
        n_parts += detokenizer_push(&d, NULL, 0, parts + n_parts);
        assert_int_equal(n_parts, n_whole);
        assert_memory_equal(parts, whole, n_whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_cut),
        cmocka_unit_test(test_random_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
