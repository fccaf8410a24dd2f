/* Conversations with a tiny DeepSeek-V4: what the state keeps between turns never shows in the words. */
#include <fathom.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "engine/chat.h"
#include "support.h"
#include "tiny_v4.h"

static char *dir;
static struct fathom_model *model;

static void copy_file(const char *from, const char *name)
{
    char *path = temp_path(dir, name), buffer[4096];
    FILE *in = fopen(from, "r"), *out = fopen(path, "w");
    assert_true(in && out);
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, in)) > 0;)
        assert_int_equal(fwrite(buffer, 1, n, out), n);
    fclose(in), fclose(out);
    free(path);
}

static int setup(void **state)
{
    struct v4_config c = v4_tiny_config();
    struct v4_tensor *tensors;
    struct fathom_err err = {0};
    size_t n;
    (void)state;
    dir = temp_create();
    char *path = temp_path(dir, "model.safetensors");
    assert_int_equal(v4_tensors(&tensors, &n, &c, NULL), FATHOM_OK);
    assert_int_equal(synth_v4_write(path, tensors, n, c.n_experts, NULL, NULL), FATHOM_OK);
    copy_file("tests/golden/v4_tiny_config.json", "config.json");
    copy_file("tests/golden/v4_tiny_tokenizer.json", "tokenizer.json");
    free(tensors), free(path);
    if (fathom_model_open(dir, &model, &err))
        fail_msg("%s", err.message);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fathom_model_close(model);
    temp_remove(dir);
    return 0;
}

struct heard {
    struct strbuf thoughts, answer;
    size_t most; /* bytes after which it is cancelled; 0: never */
};

static bool hear(void *user, bool thinking, const char *text, size_t n)
{
    struct heard *h = user;
    strbuf_add(thinking ? &h->thoughts : &h->answer, text, n);
    return h->most == 0 || h->thoughts.n + h->answer.n < h->most;
}

static void forget(struct heard *h)
{
    strbuf_free(&h->thoughts);
    strbuf_free(&h->answer);
    h->most = 0;
}

static struct fathom_chat *start(struct fathom_chat_options options, size_t n_ctx)
{
    struct fathom_chat *chat;
    struct fathom_err err = {0};
    struct fathom_context_options context = {.n_threads = 2, .n_ctx = n_ctx};
    if (fathom_chat_create(model, &context, &options, &chat, &err))
        fail_msg("%s", err.message);
    return chat;
}

static struct fathom_reply say(struct fathom_chat *chat, const char *text, struct fathom_sampling sampling,
                               struct heard *h, enum fathom_status wanted)
{
    struct fathom_reply reply;
    struct fathom_err err = {0};
    struct fathom_chat_callbacks callbacks = {.user = h, .on_text = hear};
    enum fathom_status status = fathom_chat_say(chat, text, strlen(text), &sampling, &callbacks, &reply, &err);
    if (status != wanted)
        fail_msg("status %d: %s", status, err.message);
    return reply;
}

/* The indexer for every query and for those with a choice: the same words, in several turns; the counters tell. */
static void indexers(void **state)
{
    struct fathom_sampling s = {.max_tokens = 12, .temperature = 1, .top_p = 0.9f, .seed = 5};
    struct fathom_chat *chats[2];
    (void)state;
    for (int thinking = 0; thinking < 2; thinking++) {
        for (int i = 0; i < 2; i++)
            chats[i] =
                start((struct fathom_chat_options){.system = "hell", .thinking = thinking, .always_index = i}, 400);
        for (int turn = 0; turn < 4; turn++) {
            struct heard h[2] = {0};
            struct fathom_reply r[2];
            for (int i = 0; i < 2; i++)
                r[i] = say(chats[i], turn % 2 ? "and then?" : "hello", s, &h[i], FATHOM_OK);
            assert_string_equal(strbuf_text(&h[0].answer), strbuf_text(&h[1].answer));
            assert_string_equal(strbuf_text(&h[0].thoughts), strbuf_text(&h[1].thoughts));
            assert_int_equal(r[0].n_output_tokens, r[1].n_output_tokens);
            assert_int_equal(r[1].unindexed_queries, 0);
            assert_true(turn > 0 || (r[0].unindexed_queries > 0 && r[0].indexed_queries < r[1].indexed_queries));
            forget(&h[0]), forget(&h[1]);
            s.seed++;
        }
        fathom_chat_destroy(chats[0]), fathom_chat_destroy(chats[1]);
    }
}

/* Rounded keys: other words at some point, and the same ones however the indexer runs. */
static void official(void **state)
{
    struct fathom_sampling s = {.max_tokens = 40, .top_p = 1};
    struct heard h[3] = {0};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct fathom_chat *chat =
            start((struct fathom_chat_options){.official_numerics = i > 0, .always_index = i == 2}, 200);
        say(chat, "hello", s, &h[i], FATHOM_OK);
        say(chat, "hello", s, &h[i], FATHOM_OK);
        fathom_chat_destroy(chat);
    }
    assert_string_equal(strbuf_text(&h[1].answer), strbuf_text(&h[2].answer));
    assert_true(strcmp(strbuf_text(&h[0].answer), strbuf_text(&h[1].answer)) != 0);
    for (int i = 0; i < 3; i++)
        forget(&h[i]);
}

/* A turn works through what is new only; in chat mode all that was before is there. */
static void state_is_kept(void **state)
{
    struct fathom_sampling s = {.max_tokens = 20, .top_p = 1};
    struct heard h = {0};
    struct fathom_chat *chat = start((struct fathom_chat_options){0}, 0);
    (void)state;
    struct fathom_reply first = say(chat, "hello", s, &h, FATHOM_OK);
    struct fathom_reply second = say(chat, "x", s, &h, FATHOM_OK);
    assert_int_equal(first.n_new_tokens, first.n_prompt_tokens);
    assert_int_equal(second.n_prompt_tokens, first.n_prompt_tokens + first.n_output_tokens + 5);
    assert_int_equal(second.n_new_tokens, 5); /* end, user, x, assistant, no thoughts */
    fathom_chat_reset(chat);
    forget(&h);
    struct fathom_reply again = say(chat, "hello", s, &h, FATHOM_OK);
    assert_int_equal(again.n_new_tokens, first.n_new_tokens);
    fathom_chat_destroy(chat);
    forget(&h);
}

/* Cut at a stop string, the same text follows as if the model had written no more: also when the string is cut between
 * tokens. */
static void stops(void **state)
{
    struct fathom_sampling s = {.max_tokens = 40, .top_p = 1};
    struct heard all = {0}, cut = {0};
    struct fathom_chat *chat = start((struct fathom_chat_options){0}, 0);
    char stop[4] = "";
    const char *list[] = {"never said", stop};
    (void)state;
    say(chat, "hello", s, &all, FATHOM_OK);
    assert_true(all.answer.n > 20);
    size_t at = 12;
    while (at < 20 && (strbuf_text(&all.answer)[at] & 0xc0) == 0x80)
        at++;
    memcpy(stop, strbuf_text(&all.answer) + at, 3);
    at = (size_t)(strstr(strbuf_text(&all.answer), stop) - strbuf_text(&all.answer));
    s.stop = list;
    s.n_stop = 2;
    fathom_chat_reset(chat);
    struct fathom_reply r = say(chat, "hello", s, &cut, FATHOM_OK);
    assert_int_equal(r.end, FATHOM_REPLY_STOPPED);
    assert_int_equal(cut.answer.n, at);
    assert_memory_equal(strbuf_text(&cut.answer), strbuf_text(&all.answer), at);
    s.n_stop = 0;
    say(chat, "on", s, &cut, FATHOM_OK); /* the cut reply is part of the prompt */
    fathom_chat_destroy(chat);
    forget(&all), forget(&cut);
}

/* A reply that is cancelled stays, and the conversation goes on. */
static void cancelled(void **state)
{
    struct fathom_sampling s = {.max_tokens = 30, .top_p = 1};
    struct heard h = {.most = 5};
    (void)state;
    for (int thinking = 0; thinking < 2; thinking++) {
        struct fathom_chat *chat = start((struct fathom_chat_options){.thinking = thinking}, 0);
        h.most = 5;
        struct fathom_reply r = say(chat, "hello", s, &h, FATHOM_ECANCELLED);
        assert_true(r.n_output_tokens > 0 && r.n_output_tokens < 30);
        forget(&h);
        struct fathom_reply next = say(chat, "x", s, &h, FATHOM_OK);
        assert_true(next.n_prompt_tokens > r.n_prompt_tokens);
        fathom_chat_destroy(chat);
        forget(&h);
    }
}

static void limits(void **state)
{
    struct fathom_sampling s = {.max_tokens = 0, .top_p = 1};
    struct heard h = {0};
    struct fathom_reply reply;
    struct fathom_err err = {0};
    struct fathom_chat *chat = start((struct fathom_chat_options){0}, 12);
    (void)state;
    assert_int_equal(fathom_chat_say(chat, "abcdefghijkl", 12, &s, NULL, &reply, &err), FATHOM_ELIMIT);
    assert_string_equal(err.message, "the prompt has 16 tokens, the context room for 12");
    struct fathom_reply r = say(chat, "ab", s, &h, FATHOM_OK); /* what failed was never said */
    assert_int_equal(r.n_prompt_tokens, 6);
    assert_int_equal(r.end, FATHOM_REPLY_CONTEXT);
    assert_int_equal(r.n_output_tokens, 7);
    s.temperature = -1;
    assert_int_equal(fathom_chat_say(chat, "a", 1, &s, NULL, &reply, &err), FATHOM_EINVAL);
    fathom_chat_destroy(chat);
    forget(&h);
}

static void refused(void **state)
{
    struct fathom_chat *chat;
    struct fathom_err err = {0};
    struct fathom_context_options context = {.n_ctx = (size_t)2 << 20};
    struct fathom_chat_options options = {.max_effort = true};
    (void)state;
    assert_int_equal(fathom_chat_create(model, &context, NULL, &chat, &err), FATHOM_ELIMIT);
    assert_string_equal(err.message, "a context of 2097152 tokens is longer than the model's 1048576");
    context.n_ctx = 0;
    assert_int_equal(fathom_chat_create(model, &context, &options, &chat, &err), FATHOM_EINVAL);
    assert_string_equal(err.message, "maximum effort is for thinking only");
    options.thinking = true;
    assert_int_equal(fathom_chat_create(model, &context, &options, &chat, &err), FATHOM_EINVAL);
    assert_string_equal(err.message, "maximum effort needs its published text: name a file that holds it");
    options.fixed_texts = "README.md";
    assert_int_equal(fathom_chat_create(model, &context, &options, &chat, &err), FATHOM_EFORMAT);
    context.dtype = FATHOM_BF16;
    assert_int_equal(fathom_chat_create(model, &context, NULL, &chat, &err), FATHOM_EUNSUPPORTED);
    struct fathom_context *pages;
    assert_int_equal(fathom_context_create(model, NULL, &pages, &err), FATHOM_EUNSUPPORTED);
}

/* A context that no machine has memory for, and what is taken when nobody asks for a length. */
static void too_large(void **state)
{
    struct v4 *m = calloc(1, sizeof *m);
    struct chat_state *s = calloc(1, sizeof *s);
    struct fathom_err err = {0};
    struct fathom_context_options context = {.n_threads = 1, .n_ctx = 1 << 20};
    (void)state;
    assert_true(m && s);
    m->cfg = v4_tiny_config();
    m->cfg.head_dim = 65536; /* 384 KiB a token */
    for (size_t l = 0; l < m->cfg.n_layers; l++)
        m->cfg.ratio[l] = 4;
    assert_int_equal(chat_state_create(s, m, &context, &err), FATHOM_ENOMEM);
    assert_non_null(strstr(err.message, "a context of 1048576 tokens needs 38"));
    assert_non_null(strstr(err.message, " GiB of memory, this machine has "));
    chat_state_release(s);
    context.n_ctx = 0;
    assert_int_equal(chat_state_create(s, m, &context, &err), FATHOM_OK);
    assert_true(s->v4.capacity >= 8 && s->v4.capacity <= 65536);
    chat_state_release(s);
    free(s), free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(indexers),  cmocka_unit_test(state_is_kept),
                                       cmocka_unit_test(official),  cmocka_unit_test(stops),
                                       cmocka_unit_test(cancelled), cmocka_unit_test(limits),
                                       cmocka_unit_test(refused),   cmocka_unit_test(too_large)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
