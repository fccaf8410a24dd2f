/* The reference tokenizer's ids and texts, 1,587 cases: tokenizer_cases.jsonl on tokenizer.json. */
#include "text/tokenizer.h"
#include "base/json.h"
#include "base/mapfile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int open_tokenizer(void **state)
{
    struct fathom_err err;
    struct tokenizer *tok;
    if (tokenizer_open(&tok, "tests/golden/tokenizer.json", &err))
        fail_msg("%s", err.message);
    *state = tok;
    return 0;
}

static int close_tokenizer(void **state)
{
    tokenizer_close(*state);
    return 0;
}

static void check_decoded(const struct tokenizer *tok, const struct tokens *ids, bool skip_special,
                          const struct json_node *expected)
{
    struct detokenizer d = {0};
    size_t room = 4, n = 0;
    for (size_t i = 0; i < ids->n; i++) {
        size_t n_piece;
        tokenizer_piece(tok, ids->ids[i], &n_piece);
        room += 3 * n_piece + 3;
    }
    char *text = malloc(room);
    assert_non_null(text);
    for (size_t i = 0; i < ids->n; i++) {
        size_t n_piece;
        const char *piece = tokenizer_piece(tok, ids->ids[i], &n_piece);
        if (!skip_special || !tokenizer_is_special(tok, ids->ids[i]))
            n += detokenizer_push(&d, piece, n_piece, text + n);
    }
    n += detokenizer_push(&d, NULL, 0, text + n);
    assert_int_equal(n, expected->n_text);
    assert_memory_equal(text, expected->text, n);
    free(text);
}

static void check_case(const struct tokenizer *tok, const char *line, size_t n_line)
{
    struct json j;
    assert_int_equal(json_parse(&j, line, n_line, NULL), FATHOM_OK);
    const struct json_node *root = json_root(&j), *text = json_get(&j, root, "text"), *ids = json_get(&j, root, "ids");
    struct tokens out = {0};
    assert_int_equal(tokenizer_encode(tok, text->text, text->n_text, true, &out, NULL), FATHOM_OK);
    size_t i = 0;
    for (const struct json_node *id = json_first(&j, ids); id; id = json_next(&j, ids, id), i++) {
        int64_t expected = -1;
        assert_true(json_i64(id, &expected));
        if (i >= out.n || out.ids[i] != expected)
            fail_msg("id %zu of '%s' is %d, expected %d", i, text->text, i < out.n ? (int)out.ids[i] : -1,
                     (int)expected);
    }
    assert_int_equal(i, out.n);
    check_decoded(tok, &out, false, json_get(&j, root, "decoded"));
    check_decoded(tok, &out, true, json_get(&j, root, "decoded_skip_special"));
    tokens_free(&out);
    json_free(&j);
}

static void test_cases(void **state)
{
    struct mapfile file;
    assert_int_equal(mapfile_open(&file, "tests/golden/tokenizer_cases.jsonl", NULL), FATHOM_OK);
    const char *p = (const char *)file.data, *end = p + file.size, *line_end;
    size_t n = 0;
    for (; p < end && (line_end = memchr(p, '\n', (size_t)(end - p))); p = line_end + 1, n++)
        check_case(*state, p, (size_t)(line_end - p));
    assert_int_equal(n, 1587);
    mapfile_close(&file);
}

static void test_ids_of_special_tokens(void **state)
{
    const struct {
        const char *text;
        int32_t id;
        bool special;
    } tokens[] = {
        {"<｜begin▁of▁sentence｜>", 0, true},
        {"<｜end▁of▁sentence｜>", 1, true},
        {"<image>", 128815, true},
        {"<|ref|>", 128816, true},
        {"<|/det|>", 128819, true},
        {"<td>", 128821, true},
        {"</td>", 128822, true},
        {"<｜User｜>", 128803, false},
        {"\n", 201, false},
        {" ", 223, false},
        {"<table", 114761, false},
    };
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        assert_int_equal(tokenizer_find(*state, tokens[i].text), tokens[i].id);
        assert_int_equal(tokenizer_is_special(*state, tokens[i].id), tokens[i].special);
    }
    assert_int_equal(tokenizer_find(*state, "<table>"), -1);
    assert_int_equal(tokenizer_size(*state), 128827);
    size_t n_special = 0;
    for (int32_t id = 0; id < 128827; id++)
        n_special += tokenizer_is_special(*state, id);
    assert_int_equal(n_special, 816);
}

/* Every token's own text gives back that text, whatever ids it is made of. */
static void test_every_piece_round_trips(void **state)
{
    struct tokens out = {0};
    for (int32_t id = 0; id < (int32_t)tokenizer_size(*state); id++) {
        size_t n, at = 0, n_part;
        const char *piece = tokenizer_piece(*state, id, &n);
        assert_true(n > 0);
        out.n = 0;
        assert_int_equal(tokenizer_encode(*state, piece, n, false, &out, NULL), FATHOM_OK);
        for (size_t i = 0; i < out.n; i++) {
            const char *part = tokenizer_piece(*state, out.ids[i], &n_part);
            assert_true(at + n_part <= n);
            assert_memory_equal(part, piece + at, n_part);
            at += n_part;
        }
        assert_int_equal(at, n);
    }
    tokens_free(&out);
}

/* Spec deepseek-v4 §5.1. V4's vocabulary is this one but for what was added: where it has <think> and </think>, this has
 * <td> and </td>. */
static void test_deepseek_v4(void **state)
{
    static const struct {
        const char *text;
        int32_t ids[32]; /* a zero behind them */
    } cases[] = {
        {"<｜User｜>你好<｜Assistant｜><td>推理</td>答案<｜end▁of▁sentence｜>",
         {128803, 30594, 128804, 128821, 36101, 128822, 7624, 1}},
        {"Hello! 毕老师！1 + 1 = 2 ĠÑĤÐ²ÑĬÑĢ",
         {19923, 3,   223,   5464, 5008, 1175,  19,   940,   223, 19,  438,   223, 20,
          6113,  257, 76589, 131,  100,  76032, 1628, 76589, 131, 108, 76589, 131, 98}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tokens out = {0};
        size_t n = 0;
        while (n < 32 && cases[i].ids[n])
            n++;
        assert_int_equal(tokenizer_encode(*state, cases[i].text, strlen(cases[i].text), true, &out, NULL), FATHOM_OK);
        assert_int_equal(out.n, n);
        assert_memory_equal(out.ids, cases[i].ids, n * sizeof *out.ids);
        tokens_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_ids_of_special_tokens),
        cmocka_unit_test(test_every_piece_round_trips),
        cmocka_unit_test(test_deepseek_v4),
    };
    return cmocka_run_group_tests(tests, open_tokenizer, close_tokenizer);
}
