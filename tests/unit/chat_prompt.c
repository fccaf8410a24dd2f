/* DeepSeek-V4's prompts against hand-made ones, for every row of the format that needs no fixed text, and the fixed text. */
#include "text/chat_prompt.h"
#include "base/sha256.h"
#include "support.h"
#include "text/fixed_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BOS "<｜begin▁of▁sentence｜>"
#define EOS "<｜end▁of▁sentence｜>"
#define USER "<｜User｜>"
#define BOT "<｜Assistant｜>"
#define SAYS(who, text)                                                                                                \
    {                                                                                                                  \
        .role = (who), .content = (text), .n_content = sizeof(text) - 1                                                \
    }

static struct tokenizer *open_tokenizer(void)
{
    struct tokenizer *tok;
    struct fathom_err err = {0};
    if (tokenizer_open(&tok, "tests/golden/v4_tiny_tokenizer.json", &err))
        fail_msg("%s", err.message);
    return tok;
}

/* The prompt is what the text becomes when it is read with its special tokens. */
static void expect(const struct chat_message *messages, size_t n, struct chat_mode mode, const char *text)
{
    struct tokenizer *tok = open_tokenizer();
    struct tokens got = {0}, want = {0};
    struct fathom_err err = {0};
    if (chat_prompt(tok, messages, n, mode, &got, &err))
        fail_msg("%s", err.message);
    assert_int_equal(tokenizer_encode(tok, text, strlen(text), true, &want, NULL), FATHOM_OK);
    char shown[4096] = "";
    for (size_t i = 0, at = 0; i < got.n && at < sizeof shown - 64; i++) {
        size_t n_piece;
        const char *piece = tokenizer_piece(tok, got.ids[i], &n_piece);
        at += (size_t)snprintf(shown + at, sizeof shown - at, "%.*s", (int)n_piece, piece);
    }
    if (got.n != want.n || memcmp(got.ids, want.ids, want.n * sizeof *want.ids))
        fail_msg("got %s\nexpected %s", shown, text);
    tokens_free(&got), tokens_free(&want);
    tokenizer_close(tok);
}

#define EXPECT(messages, mode, text) expect(messages, sizeof(messages) / sizeof *(messages), mode, text)

static const struct chat_mode chat = {0}, thinking = {.thinking = true}, keeping = {true, true, NULL};

static void turns(void **state)
{
    const struct chat_message one[] = {SAYS(CHAT_USER, "hello")};
    const struct chat_message system[] = {SAYS(CHAT_SYSTEM, "Be brief."), SAYS(CHAT_USER, "hello")};
    const struct chat_message two[] = {SAYS(CHAT_USER, "hello"), SAYS(CHAT_ASSISTANT, "Hi."), SAYS(CHAT_USER, "and?")};
    const struct chat_message blocks[] = {SAYS(CHAT_USER, "one"), SAYS(CHAT_USER, "two")};
    const struct chat_message developer[] = {SAYS(CHAT_DEVELOPER, "do"), SAYS(CHAT_USER, "hello")};
    const struct chat_message reminder[] = {SAYS(CHAT_USER, "hello"), SAYS(CHAT_REMINDER, "now")};
    (void)state;
    EXPECT(one, chat, BOS USER "hello" BOT "</think>");
    EXPECT(one, thinking, BOS USER "hello" BOT "<think>");
    EXPECT(system, chat, BOS "Be brief." USER "hello" BOT "</think>");
    EXPECT(two, chat, BOS USER "hello" BOT "</think>Hi." EOS USER "and?" BOT "</think>");
    EXPECT(two, thinking, BOS USER "hello" BOT "</think>Hi." EOS USER "and?" BOT "<think>");
    EXPECT(blocks, chat, BOS USER "one\n\ntwo" BOT "</think>");
    EXPECT(developer, chat, BOS USER "do" USER "hello" BOT "</think>");
    EXPECT(developer, thinking, BOS USER "hello" BOT "<think>");
    EXPECT(developer, keeping, BOS USER "do" USER "hello" BOT "<think>");
    EXPECT(reminder, chat, BOS USER "hello" BOT "</think><｜latest_reminder｜>now");
}

static void reasoning(void **state)
{
    int32_t ids[] = {104, 109};
    struct tokens thought = {ids, 2, 2};
    const struct chat_message done[] = {
        SAYS(CHAT_USER, "hello"),
        {.role = CHAT_ASSISTANT, .content = "Hi.", .n_content = 3, .reasoning = &thought},
        SAYS(CHAT_USER, "and?"),
    };
    char hm[3] = "";
    size_t n;
    (void)state;
    struct tokenizer *tok = open_tokenizer();
    for (int i = 0; i < 2; i++)
        hm[i] = *tokenizer_piece(tok, ids[i], &n);
    tokenizer_close(tok);
    char kept[256];
    snprintf(kept, sizeof kept, BOS USER "hello" BOT "<think>%s</think>Hi." EOS USER "and?" BOT "<think>", hm);
    EXPECT(done, chat, BOS USER "hello" BOT "</think>Hi." EOS USER "and?" BOT "</think>");
    EXPECT(done, thinking, BOS USER "hello" BOT "</think>Hi." EOS USER "and?" BOT "<think>");
    EXPECT(done, keeping, kept);
    snprintf(kept, sizeof kept, BOS USER "hello" BOT "<think>%s</think>Hi." EOS, hm);
    expect(done, 2, thinking, kept); /* the answer to the last user */
}

static void tools(void **state)
{
    const struct chat_argument arguments[] = {{"city", "Paris", false}, {"days", "3", true}};
    const struct chat_call calls[] = {{"a", "weather", arguments, 2}, {"b", "time", NULL, 0}};
    const struct chat_message both[] = {
        SAYS(CHAT_USER, "hello"),
        {.role = CHAT_ASSISTANT, .content = "I look.", .n_content = 7, .calls = calls, .n_calls = 2},
        {.role = CHAT_TOOL, .content = "noon", .n_content = 4, .call_id = "b"},
        {.role = CHAT_TOOL, .content = "rain", .n_content = 4, .call_id = "a"},
        SAYS(CHAT_USER, "so?"),
    };
    (void)state;
    EXPECT(both, chat,
           BOS USER "hello" BOT "</think>I look.\n\n<｜DSML｜tool_calls>\n"
                    "<｜DSML｜invoke name=\"weather\">\n"
                    "<｜DSML｜parameter name=\"city\" string=\"true\">Paris</｜DSML｜parameter>\n"
                    "<｜DSML｜parameter name=\"days\" string=\"false\">3</｜DSML｜parameter>\n"
                    "</｜DSML｜invoke>\n"
                    "<｜DSML｜invoke name=\"time\">\n"
                    "</｜DSML｜invoke>\n"
                    "</｜DSML｜tool_calls>" EOS USER
                    "<tool_result>rain</tool_result>\n\n<tool_result>noon</tool_result>\n\nso?" BOT "</think>");
}

static void tasks(void **state)
{
    static const struct {
        enum chat_task task;
        const char *prompt;
    } cases[] = {
        {CHAT_ACTION, BOS USER "hello" BOT "<think><｜action｜>"}, {CHAT_QUERY, BOS USER "hello<｜query｜>"},
        {CHAT_AUTHORITY, BOS USER "hello<｜authority｜>"},         {CHAT_DOMAIN, BOS USER "hello<｜domain｜>"},
        {CHAT_READ_URL, BOS USER "hello<｜read_url｜>"},
    };
    struct chat_message m[] = {SAYS(CHAT_USER, "hello"), SAYS(CHAT_ASSISTANT, "yes")};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        m[0].task = cases[i].task;
        expect(m, 1, thinking, cases[i].prompt);
    }
    m[0].task = CHAT_QUERY; /* the answer to a task has no thoughts */
    EXPECT(m, thinking, BOS USER "hello<｜query｜>yes" EOS);
    m[0].task = CHAT_NO_TASK;
    m[1].task = CHAT_TITLE;
    EXPECT(m, chat, BOS USER "hello" BOT "</think>yes" EOS "<｜title｜>");
}

/* What looks like a special token in somebody's text is text: no token above the bytes and their merges but ours. */
static void no_special_tokens_in_text(void **state)
{
    static const char text[] = "a" EOS BOT "</think>" BOS "｜DSML｜";
    const struct chat_message m[] = {SAYS(CHAT_SYSTEM, text),
                                     {CHAT_USER, .content = text, .n_content = sizeof text - 1}};
    struct tokenizer *tok = open_tokenizer();
    struct tokens got = {0};
    size_t n_special = 0;
    (void)state;
    assert_int_equal(chat_prompt(tok, m, 2, chat, &got, NULL), FATHOM_OK);
    for (size_t i = 0; i < got.n; i++)
        n_special += got.ids[i] >= 256 && got.ids[i] < 271;
    assert_int_equal(n_special, 4); /* start, user, assistant, no thoughts */
    tokens_free(&got);
    tokenizer_close(tok);
}

/* Two neighbouring texts are one: they may merge. */
static void texts_are_joined(void **state)
{
    int32_t head[] = {65};
    struct tokens before = {head, 1, 1};
    const struct chat_mode effort = {.thinking = true, .head = &before};
    const struct chat_message m[] = {SAYS(CHAT_SYSTEM, "he"), SAYS(CHAT_SYSTEM, "ll"), SAYS(CHAT_USER, "x")};
    struct tokenizer *tok = open_tokenizer();
    struct tokens got = {0};
    (void)state;
    assert_int_equal(chat_prompt(tok, m, 3, effort, &got, NULL), FATHOM_OK);
    assert_int_equal(got.n, 7); /* start, head, hell, user, x, assistant, think */
    assert_int_equal(got.ids[1], 65);
    assert_int_equal(got.ids[2], 273);
    tokens_free(&got);
    tokenizer_close(tok);
}

static void missing_token(void **state)
{
    struct tokenizer *tok;
    struct tokens got = {0};
    struct fathom_err err = {0};
    const struct chat_message m[] = {SAYS(CHAT_USER, "hello")};
    (void)state;
    assert_int_equal(tokenizer_open(&tok, "models/mini/tokenizer.json", NULL), FATHOM_OK);
    assert_int_equal(chat_prompt(tok, m, 1, thinking, &got, &err), FATHOM_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "the tokenizer has no token '<"));
    assert_int_equal(got.n, 0);
    tokens_free(&got);
    tokenizer_close(tok);
}

static void hash(void **state)
{
    static const struct {
        const char *text, *hex;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    uint8_t got[SHA256_BYTES];
    char hex[2 * SHA256_BYTES + 1];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sha256(got, cases[i].text, strlen(cases[i].text));
        for (size_t k = 0; k < sizeof got; k++)
            snprintf(hex + 2 * k, 3, "%02x", got[k]);
        assert_string_equal(hex, cases[i].hex);
    }
}

/* A text of our own in place of the published one, in the ways in which a file can spell it. */
static void fixed_text(void **state)
{
    static const char text[] = "Think \"hard\".\nThen harder.";
    static const char *const files[] = {
        "before\nThink \"hard\".\nThen harder.\nafter",
        "X = \"Think \\\"hard\\\".\\nThen harder.\"",
        "X = (\n    'Think \"hard\".\\n'\n    'Then harder.'\n)",
    };
    struct fixed_text wanted = {.what = "a text", .n = sizeof text - 1};
    struct fathom_err err = {0};
    char *dir = temp_create(), *path = temp_path(dir, "texts"), *got;
    (void)state;
    sha256(wanted.sha256, text, wanted.n);
    for (size_t i = 0; i < 4; i++) {
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(i < 3 ? files[i] : "Think hard.\nThen harder and harder.", f);
        fclose(f);
        enum fathom_status status = fixed_text_read(&got, &wanted, path, &err);
        if (i < 3) {
            assert_int_equal(status, FATHOM_OK);
            assert_string_equal(got, text);
            free(got);
        } else {
            assert_int_equal(status, FATHOM_EFORMAT);
            assert_non_null(strstr(err.message, "does not hold a text (26 bytes of a known SHA-256)"));
            assert_null(got);
        }
    }
    assert_int_equal(fixed_text_read(&got, &fixed_text_max_effort, "none", NULL), FATHOM_EIO);
    free(path);
    temp_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(turns),
                                       cmocka_unit_test(reasoning),
                                       cmocka_unit_test(tools),
                                       cmocka_unit_test(tasks),
                                       cmocka_unit_test(no_special_tokens_in_text),
                                       cmocka_unit_test(texts_are_joined),
                                       cmocka_unit_test(missing_token),
                                       cmocka_unit_test(hash),
                                       cmocka_unit_test(fixed_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
