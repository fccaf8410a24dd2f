/* A conversation: what was said, and how a reply comes about. */
#include "engine/chat.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/sampler.h"
#include "text/fixed_text.h"

struct turn {
    bool is_reply;
    char *text; /* owned: of the user, or of a reply that was cut at a stop string; NULL: ids */
    size_t n_text;
    struct tokens ids, reasoning; /* of a reply, as they came */
};

struct fathom_chat {
    const struct fathom_model *model; /* borrowed */
    struct chat_state state;
    char *system; /* owned, or NULL */
    bool thinking;
    struct tokens head; /* the text of maximum effort, or nothing */
    int32_t end_id, think_end_id;
    struct turn *turns;
    size_t n_turns, capacity;
};

struct fathom_sampling fathom_sampling_defaults(void) { return (struct fathom_sampling){.temperature = 1, .top_p = 1}; }

/* ---- creation ------------------------------------------------------------------------------------------------------- */

static enum fathom_status read_effort(struct fathom_chat *chat, const struct fathom_chat_options *o,
                                      struct fathom_err *err)
{
    char *text;
    if (!o->thinking)
        return fail(err, FATHOM_EINVAL, "maximum effort is for thinking only");
    if (!o->fixed_texts)
        return fail(err, FATHOM_EINVAL, "maximum effort needs its published text: name a file that holds it");
    enum fathom_status status = fixed_text_read(&text, &fixed_text_max_effort, o->fixed_texts, err);
    if (!status)
        status = tokenizer_encode(chat->model->tokenizer, text, strlen(text), false, &chat->head, err);
    free(text);
    return status;
}

enum fathom_status fathom_chat_create(const struct fathom_model *model, const struct fathom_context_options *context,
                                      const struct fathom_chat_options *options, struct fathom_chat **out,
                                      struct fathom_err *err)
{
    struct fathom_chat_options o = options ? *options : (struct fathom_chat_options){0};
    *out = NULL;
    if (!model->v4)
        return fail(err, FATHOM_EUNSUPPORTED, "this model reads pages; only DeepSeek-V4 writes text");
    struct fathom_chat *chat = calloc(1, sizeof *chat);
    if (!chat)
        return fail_nomem(err, sizeof *chat, "the conversation");
    chat->model = model;
    chat->thinking = o.thinking;
    chat->end_id = tokenizer_find(model->tokenizer, CHAT_END);
    chat->think_end_id = tokenizer_find(model->tokenizer, CHAT_THINK_END);
    enum fathom_status status = chat_state_create(&chat->state, model->v4, context, err);
    if (!status && o.system && !(chat->system = strdup(o.system)))
        status = fail_nomem(err, strlen(o.system), "the system text");
    if (!status && o.max_effort)
        status = read_effort(chat, &o, err);
    if (status) {
        fathom_chat_destroy(chat);
        return status;
    }
    chat->state.v4.numerics = o.official_numerics ? V4_NUMERICS_OFFICIAL : V4_NUMERICS_PLAIN;
    chat->state.v4.indexer = o.always_index ? V4_INDEXER_ALWAYS : V4_INDEXER_AUTO;
    *out = chat;
    return FATHOM_OK;
}

static void drop_turn(struct fathom_chat *chat)
{
    struct turn *t = &chat->turns[--chat->n_turns];
    free(t->text);
    tokens_free(&t->ids);
    tokens_free(&t->reasoning);
}

void fathom_chat_reset(struct fathom_chat *chat)
{
    while (chat->n_turns > 0)
        drop_turn(chat);
    chat_state_reset(&chat->state);
}

void fathom_chat_destroy(struct fathom_chat *chat)
{
    if (!chat)
        return;
    while (chat->n_turns > 0)
        drop_turn(chat);
    chat_state_release(&chat->state);
    tokens_free(&chat->head);
    free(chat->system);
    free(chat->turns);
    free(chat);
}

/* ---- what was said ------------------------------------------------------------------------------------------------- */

/* A new turn with a copy of text, which may be NULL. */
static struct turn *add_turn(struct fathom_chat *chat, bool is_reply, const char *text, size_t n,
                             struct fathom_err *err)
{
    if (chat->n_turns == chat->capacity) {
        size_t more = chat->capacity ? 2 * chat->capacity : 16;
        struct turn *turns = reallocarray(chat->turns, more, sizeof *turns);
        if (!turns) {
            fail_nomem(err, more * sizeof *turns, "the conversation");
            return NULL;
        }
        chat->turns = turns;
        chat->capacity = more;
    }
    struct turn turn = {.is_reply = is_reply, .n_text = n};
    if (text && !(turn.text = malloc(n + 1))) {
        fail_nomem(err, n + 1, "the conversation");
        return NULL;
    }
    if (text)
        memcpy(turn.text, text, n);
    chat->turns[chat->n_turns] = turn;
    return &chat->turns[chat->n_turns++];
}

static enum fathom_status render(const struct fathom_chat *chat, struct tokens *prompt, struct fathom_err *err)
{
    struct chat_message *messages = calloc(chat->n_turns + 1, sizeof *messages);
    size_t n = 0;
    if (!messages)
        return fail_nomem(err, (chat->n_turns + 1) * sizeof *messages, "the conversation");
    if (chat->system)
        messages[n++] =
            (struct chat_message){.role = CHAT_SYSTEM, .content = chat->system, .n_content = strlen(chat->system)};
    for (size_t i = 0; i < chat->n_turns; i++) {
        const struct turn *t = &chat->turns[i];
        messages[n++] = (struct chat_message){.role = t->is_reply ? CHAT_ASSISTANT : CHAT_USER,
                                              .content = t->text,
                                              .n_content = t->text ? t->n_text : 0,
                                              .ids = t->is_reply && !t->text ? &t->ids : NULL,
                                              .reasoning = &t->reasoning};
    }
    struct chat_mode mode = {.thinking = chat->thinking, .head = &chat->head};
    enum fathom_status status = chat_prompt(chat->model->tokenizer, messages, n, mode, prompt, err);
    free(messages);
    return status;
}

/* ---- a reply ------------------------------------------------------------------------------------------------------- */

struct writing {
    struct fathom_chat *chat;
    const struct fathom_sampling *sampling;
    const struct fathom_chat_callbacks *callbacks;
    struct turn *turn;
    struct detokenizer detokenizer;
    struct strbuf text; /* of the answer so far */
    size_t shown;       /* bytes of it          */
    bool thinks;
};

static bool show(const struct writing *w, const char *text, size_t n)
{
    return n == 0 || !w->callbacks || !w->callbacks->on_text ||
           w->callbacks->on_text(w->callbacks->user, w->thinks, text, n);
}

/* Where the first stop string starts in what was not shown yet, or the end; *waits: bytes of the end that may become one. */
static size_t find_stop(const struct writing *w, size_t *waits)
{
    const char *text = strbuf_text(&w->text);
    size_t n = w->text.n, first = n;
    *waits = 0;
    for (size_t i = 0; i < w->sampling->n_stop; i++) {
        const char *stop = w->sampling->stop[i];
        size_t n_stop = strlen(stop);
        const char *found = n_stop ? memmem(text + w->shown, n - w->shown, stop, n_stop) : NULL;
        if (found && (size_t)(found - text) < first)
            first = (size_t)(found - text);
        for (size_t k = n - w->shown < n_stop ? n - w->shown : n_stop ? n_stop - 1 : 0; k > *waits; k--)
            if (!memcmp(text + n - k, stop, k))
                *waits = k;
    }
    return first;
}

enum shown { GO_ON, STOPPED, CANCELLED };

/* Takes bytes of the answer and shows what can be shown. */
static enum shown write_answer(struct writing *w, const char *text, size_t n, bool is_end)
{
    size_t waits, stop, from = w->shown;
    strbuf_add(&w->text, text, n);
    stop = find_stop(w, &waits);
    bool is_stopped = stop < w->text.n;
    if (is_stopped)
        strbuf_cut(&w->text, stop);
    w->shown = is_stopped || is_end ? w->text.n : w->text.n - waits;
    if (!show(w, strbuf_text(&w->text) + from, w->shown - from))
        return CANCELLED;
    return is_stopped ? STOPPED : GO_ON;
}

/* The text of a token; piece NULL: the end. */
static enum shown write_piece(struct writing *w, const char *piece, size_t n)
{
    char buffer[256];
    enum shown shown = GO_ON;
    do {
        const size_t most = (sizeof buffer - 3) / 3; /* a broken byte becomes three */
        size_t part = n < most ? n : most, len = detokenizer_push(&w->detokenizer, piece, part, buffer);
        if (w->thinks)
            shown = show(w, buffer, len) ? GO_ON : CANCELLED;
        else
            shown = write_answer(w, buffer, len, !piece);
        n -= part;
        if (piece)
            piece += part;
    } while (n && shown == GO_ON);
    return shown;
}

/* Takes one token of the reply. */
static enum shown take(struct writing *w, int32_t id, struct fathom_err *err)
{
    const struct tokenizer *tok = w->chat->model->tokenizer;
    if (w->thinks && id == w->chat->think_end_id) {
        enum shown shown = write_piece(w, NULL, 0);
        w->thinks = false;
        return shown;
    }
    if (tokens_push(w->thinks ? &w->turn->reasoning : &w->turn->ids, id, err))
        return CANCELLED;
    size_t n;
    const char *piece = tokenizer_piece(tok, id, &n);
    return n == 0 || tokenizer_is_special(tok, id) ? GO_ON : write_piece(w, piece, n);
}

static enum fathom_status cancelled(struct fathom_err *err)
{
    return err && err->status ? err->status : fail(err, FATHOM_ECANCELLED, "cancelled");
}

static enum fathom_status write_reply(struct writing *w, struct sampler *sampler, struct fathom_reply *reply,
                                      struct fathom_err *err)
{
    struct fathom_chat *chat = w->chat;
    struct chat_state *s = &chat->state;
    size_t n_vocab = tokenizer_size(chat->model->tokenizer), most = (size_t)w->sampling->max_tokens;
    for (;;) {
        if (most > 0 && reply->n_output_tokens == most) {
            reply->end = FATHOM_REPLY_LIMIT;
            break;
        }
        int32_t id = sampler_next(sampler, s->logits, n_vocab);
        if (id < 0)
            return fail(err, FATHOM_ENUMERIC, "the logits after %zu tokens hold NaN", s->fed.n);
        if (id == chat->end_id) {
            reply->end = FATHOM_REPLY_DONE;
            break;
        }
        reply->n_output_tokens++;
        enum shown shown = take(w, id, err);
        if (shown == STOPPED) {
            reply->end = FATHOM_REPLY_STOPPED;
            return FATHOM_OK;
        }
        if (shown == CANCELLED)
            return cancelled(err);
        if (s->fed.n == s->v4.capacity) {
            reply->end = FATHOM_REPLY_CONTEXT;
            break;
        }
        enum fathom_status status = chat_state_step(s, id, err);
        if (status)
            return status;
    }
    return write_piece(w, NULL, 0) == CANCELLED ? cancelled(err) : FATHOM_OK;
}

/* What a reply was cut to at a stop string is text from now on: its tokens go further. */
static enum fathom_status keep_cut(struct writing *w, struct fathom_err *err)
{
    w->turn->text = malloc(w->text.n + 1);
    if (!w->turn->text)
        return fail_nomem(err, w->text.n + 1, "the conversation");
    memcpy(w->turn->text, strbuf_text(&w->text), w->text.n);
    w->turn->n_text = w->text.n;
    return FATHOM_OK;
}

static enum fathom_status reply_to(struct fathom_chat *chat, const struct fathom_sampling *sampling,
                                   const struct fathom_chat_callbacks *callbacks, struct fathom_reply *reply,
                                   struct fathom_err *err)
{
    struct writing w = {.chat = chat, .sampling = sampling, .callbacks = callbacks, .thinks = chat->thinking};
    struct sampler sampler;
    struct fathom_err local = {0};
    double start = clock_ms();
    enum fathom_status status = sampler_init(&sampler, sampling->temperature, sampling->top_p, sampling->seed,
                                             tokenizer_size(chat->model->tokenizer), err);
    if (status)
        return status;
    w.turn = add_turn(chat, true, NULL, 0, err);
    if (!w.turn) {
        sampler_release(&sampler);
        return FATHOM_ENOMEM;
    }
    status = write_reply(&w, &sampler, reply, &local);
    if (!status && reply->end == FATHOM_REPLY_STOPPED)
        status = keep_cut(&w, &local);
    if (status && err)
        *err = local;
    reply->decode_ms = clock_ms() - start;
    strbuf_free(&w.text);
    sampler_release(&sampler);
    return status;
}

enum fathom_status fathom_chat_say(struct fathom_chat *chat, const char *text, size_t n_bytes,
                                   const struct fathom_sampling *sampling,
                                   const struct fathom_chat_callbacks *callbacks, struct fathom_reply *reply,
                                   struct fathom_err *err)
{
    struct fathom_sampling usual = fathom_sampling_defaults();
    struct tokens prompt = {0};
    struct v4_stats before = chat->state.v4.stats;
    double start = clock_ms();
    memset(reply, 0, sizeof *reply);
    sampling = sampling ? sampling : &usual;
    if (sampling->max_tokens < 0 || !(sampling->temperature >= 0) || !(sampling->top_p > 0))
        return fail(err, FATHOM_EINVAL, "max_tokens and temperature must not be negative, top_p must be above 0");
    if (!add_turn(chat, false, text, n_bytes, err))
        return FATHOM_ENOMEM;
    enum fathom_status status = render(chat, &prompt, err);
    reply->n_prompt_tokens = prompt.n;
    bool can_go_back = chat->thinking || sampling->n_stop > 0; /* the next prompt will not begin as this one went on */
    if (!status)
        status = chat_state_prompt(&chat->state, &prompt, can_go_back, callbacks, &reply->n_new_tokens, err);
    tokens_free(&prompt);
    reply->prefill_ms = clock_ms() - start;
    if (status)
        drop_turn(chat);
    else
        status = reply_to(chat, sampling, callbacks, reply, err);
    reply->indexed_queries = chat->state.v4.stats.indexed_queries - before.indexed_queries;
    reply->unindexed_queries = chat->state.v4.stats.unindexed_queries - before.unindexed_queries;
    reply->scored_candidates = chat->state.v4.stats.scored_candidates - before.scored_candidates;
    reply->state_bytes = v4_state_bytes(&chat->state.v4, chat->state.v4.n_tok);
    return status;
}
