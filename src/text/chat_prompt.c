#include "text/chat_prompt.h"

#include "base/strbuf.h"

#include <stdlib.h>
#include <string.h>

#define BOS "<｜begin▁of▁sentence｜>"
#define USER "<｜User｜>"
#define ASSISTANT "<｜Assistant｜>"
#define REMINDER "<｜latest_reminder｜>"
#define THINK "<think>"
#define DSML "｜DSML｜"

static const char *const task_tokens[] = {
    [CHAT_ACTION] = "<｜action｜>", [CHAT_QUERY] = "<｜query｜>", [CHAT_AUTHORITY] = "<｜authority｜>",
    [CHAT_DOMAIN] = "<｜domain｜>", [CHAT_TITLE] = "<｜title｜>", [CHAT_READ_URL] = "<｜read_url｜>"};

/* Ordinary text waits until a special token or the end comes: it is split into tokens as one piece. */
struct writer {
    const struct tokenizer *tok;
    struct tokens *out;
    struct strbuf text;
    enum fathom_status status;
    struct fathom_err *err;
};

static void flush(struct writer *w)
{
    if (!w->status && w->text.failed)
        w->status = fail_nomem(w->err, w->text.n, "the prompt");
    if (!w->status)
        w->status = tokenizer_encode(w->tok, strbuf_text(&w->text), w->text.n, false, w->out, w->err);
    strbuf_cut(&w->text, 0);
}

static void put_text(struct writer *w, const char *text) { strbuf_adds(&w->text, text); }

static void put_special(struct writer *w, const char *name)
{
    flush(w);
    if (w->status)
        return;
    int32_t id = tokenizer_find(w->tok, name);
    w->status = id < 0 ? fail(w->err, FATHOM_EUNSUPPORTED, "the tokenizer has no token '%s'", name)
                       : tokens_push(w->out, id, w->err);
}

static void put_ids(struct writer *w, const struct tokens *ids)
{
    flush(w);
    for (size_t i = 0; ids && i < ids->n && !w->status; i++)
        w->status = tokens_push(w->out, ids->ids[i], w->err);
}

static bool is_user(const struct chat_message *m) { return m->role == CHAT_USER || m->role == CHAT_DEVELOPER; }
static bool is_turn(const struct chat_message *m) { return m->role == CHAT_USER || m->role == CHAT_TOOL; }

/* ---- the user's turn ----------------------------------------------------------------------------------------------- */

static void put_block(struct writer *w, const struct chat_message *m)
{
    if (m->role == CHAT_TOOL)
        put_text(w, "<tool_result>");
    strbuf_add(&w->text, m->content, m->n_content);
    if (m->role == CHAT_TOOL)
        put_text(w, "</tool_result>");
}

/* The place of a result among the calls that it and its neighbours answer. */
static size_t call_number(const struct chat_message *result, const struct chat_message *caller)
{
    size_t n = caller ? caller->n_calls : 0;
    for (size_t i = 0; result->call_id && i < n; i++)
        if (caller->calls[i].id && !strcmp(caller->calls[i].id, result->call_id))
            return i;
    return n;
}

/* Messages [first, end): users' and tools', one behind the other; results trade places among themselves. */
static void put_turn(struct writer *w, const struct chat_message *messages, size_t first, size_t end)
{
    const struct chat_message *caller = NULL;
    size_t n_results = 0;
    for (size_t i = 0; i < first; i++)
        if (messages[i].role == CHAT_ASSISTANT)
            caller = &messages[i];
    put_special(w, USER);
    for (size_t i = first; i < end; i++) {
        const struct chat_message *m = &messages[i];
        if (m->role == CHAT_TOOL) { /* the result of that rank */
            size_t rank = n_results++;
            for (size_t j = first; j < end; j++) {
                size_t before = 0, mine = call_number(&messages[j], caller);
                if (messages[j].role != CHAT_TOOL)
                    continue;
                for (size_t k = first; k < end; k++) {
                    size_t other = call_number(&messages[k], caller);
                    before += messages[k].role == CHAT_TOOL && (other < mine || (other == mine && k < j));
                }
                if (before == rank)
                    m = &messages[j];
            }
        }
        if (i > first)
            put_text(w, "\n\n");
        put_block(w, m);
    }
}

/* ---- the assistant's ----------------------------------------------------------------------------------------------- */

static void put_tag(struct writer *w, bool opens, const char *name)
{
    put_text(w, opens ? "<" : "</");
    put_special(w, DSML);
    put_text(w, name);
}

static void put_calls(struct writer *w, const struct chat_message *m)
{
    put_text(w, "\n\n");
    put_tag(w, true, "tool_calls>\n");
    for (size_t i = 0; i < m->n_calls; i++) {
        const struct chat_call *call = &m->calls[i];
        put_tag(w, true, "invoke name=\"");
        put_text(w, call->name);
        put_text(w, "\">\n");
        for (size_t k = 0; k < call->n_arguments; k++) {
            const struct chat_argument *a = &call->arguments[k];
            put_tag(w, true, "parameter name=\"");
            put_text(w, a->name);
            put_text(w, a->is_json ? "\" string=\"false\">" : "\" string=\"true\">");
            put_text(w, a->value);
            put_tag(w, false, "parameter>\n");
        }
        put_tag(w, false, "invoke>\n");
    }
    put_tag(w, false, "tool_calls>");
}

static void put_answer(struct writer *w, const struct chat_message *m, bool with_reasoning)
{
    if (with_reasoning) {
        put_ids(w, m->reasoning);
        put_special(w, CHAT_THINK_END);
    }
    if (m->ids)
        put_ids(w, m->ids);
    else
        strbuf_add(&w->text, m->content, m->n_content);
    if (m->n_calls > 0)
        put_calls(w, m);
    put_special(w, CHAT_END);
    if (m->task == CHAT_TITLE)
        put_special(w, task_tokens[CHAT_TITLE]);
}

/* ---- all of it ----------------------------------------------------------------------------------------------------- */

/* What leads from a user's turn to the answer, or to the task's. */
static void put_start(struct writer *w, enum chat_task task, bool thinks)
{
    if (task != CHAT_NO_TASK && task != CHAT_ACTION) {
        put_special(w, task_tokens[task]);
        return;
    }
    put_special(w, ASSISTANT);
    put_special(w, thinks ? THINK : CHAT_THINK_END);
    if (task == CHAT_ACTION)
        put_special(w, task_tokens[CHAT_ACTION]);
}

enum fathom_status chat_prompt(const struct tokenizer *tok, const struct chat_message *messages, size_t n,
                               struct chat_mode mode, struct tokens *out, struct fathom_err *err)
{
    struct writer w = {.tok = tok, .out = out, .err = err};
    size_t n_before = out->n, last_user = 0;
    enum chat_task task = CHAT_NO_TASK; /* of the turn that is being answered */
    for (size_t i = 0; i < n; i++)
        if (is_user(&messages[i]) || is_turn(&messages[i]))
            last_user = i;
    put_special(&w, BOS);
    put_ids(&w, mode.head);
    for (size_t i = 0, end; i < n && !w.status; i = end) {
        const struct chat_message *m = &messages[i];
        bool thinks = mode.thinking && (mode.keep_reasoning || i >= last_user);
        end = i + 1;
        switch (m->role) {
        case CHAT_SYSTEM: strbuf_add(&w.text, m->content, m->n_content); continue;
        case CHAT_REMINDER:
            put_special(&w, REMINDER);
            strbuf_add(&w.text, m->content, m->n_content);
            continue;
        case CHAT_ASSISTANT:
            put_answer(&w, m, thinks && task == CHAT_NO_TASK);
            task = CHAT_NO_TASK;
            continue;
        case CHAT_DEVELOPER:
            if (mode.thinking && !mode.keep_reasoning && i < last_user)
                continue;
            put_turn(&w, messages, i, end);
            break;
        case CHAT_USER:
        case CHAT_TOOL:
            while (end < n && is_turn(&messages[end]))
                end++;
            put_turn(&w, messages, i, end);
            break;
        }
        task = messages[end - 1].task;
        thinks = mode.thinking && (mode.keep_reasoning || end - 1 >= last_user);
        if (end == n || messages[end].role == CHAT_ASSISTANT || messages[end].role == CHAT_REMINDER)
            put_start(&w, task, thinks);
    }
    flush(&w);
    strbuf_free(&w.text);
    if (w.status)
        out->n = n_before;
    return w.status;
}
