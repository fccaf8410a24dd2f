#include "talk.h"

#include "interrupt.h"
#include "model_path.h"
#include "terminal.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_SYSTEM = 0x300, KEY_THINKING, KEY_EFFORT, KEY_FIXED, KEY_TEMPERATURE, KEY_TOP_P, KEY_SEED, KEY_STOP };
enum { KEY_MAX_TOKENS = 0x320, KEY_CONTEXT, KEY_INDEXER, KEY_NUMERICS, KEY_STATS };

static const struct argp_option options[] = {
    {.doc = "What is said:", .group = 1},
    {.name = "system", .key = KEY_SYSTEM, .arg = "TEXT", .doc = "In front of the conversation"},
    {.name = "thinking", .key = KEY_THINKING, .doc = "The model thinks first; its thoughts go to standard error"},
    {.name = "effort",
     .key = KEY_EFFORT,
     .arg = "usual|max",
     .doc = "How much it thinks; max needs --fixed-texts (default: usual)"},
    {.name = "fixed-texts",
     .key = KEY_FIXED,
     .arg = "FILE",
     .doc = "File with the published text of maximum effort, such as the encoder published beside the weights"},
    {.name = "stop", .key = KEY_STOP, .arg = "TEXT", .doc = "The answer ends before this; may be given several times"},
    {.doc = "How it is chosen:", .group = 2},
    {.name = "temperature", .key = KEY_TEMPERATURE, .arg = "X", .doc = "0 takes the likeliest token (default: 1)"},
    {.name = "top-p", .key = KEY_TOP_P, .arg = "X", .doc = "Of the likeliest that make up this much (default: 1)"},
    {.name = "seed", .key = KEY_SEED, .arg = "N", .doc = "For temperatures above 0 (default: 0)"},
    {.name = "max-tokens",
     .key = KEY_MAX_TOKENS,
     .arg = "N",
     .doc = "Of a reply; 0: what the context holds (default: 0)"},
    {.name = "context",
     .key = KEY_CONTEXT,
     .arg = "N",
     .doc = "Tokens of the whole conversation (default: 65536 at most)"},
    {.name = "indexer",
     .key = KEY_INDEXER,
     .arg = "auto|always",
     .doc = "Whether queries without a choice run the indexer; the answer is the same (default: auto)"},
    {.name = "numerics",
     .key = KEY_NUMERICS,
     .arg = "plain|official",
     .doc = "Keys as they are, or rounded as the published code rounds them (default: plain)"},
    {.name = "stats", .key = KEY_STATS, .doc = "What each reply cost, as JSON on standard error"},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    static const char *const efforts[] = {"usual", "max", NULL}, *const indexers[] = {"auto", "always", NULL};
    static const char *const numerics[] = {"plain", "official", NULL};
    struct talk_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &o->engine; return 0;
    case KEY_SYSTEM: o->chat.system = arg; return 0;
    case KEY_THINKING: o->chat.thinking = true; return 0;
    case KEY_EFFORT: o->chat.max_effort = option_choice(state, "--effort", arg, efforts) == 1; return 0;
    case KEY_FIXED: o->chat.fixed_texts = option_name(state, "--fixed-texts", arg, "a file"); return 0;
    case KEY_TEMPERATURE: o->sampling.temperature = option_float(state, "--temperature", arg, 0, 100); return 0;
    case KEY_TOP_P: o->sampling.top_p = option_float(state, "--top-p", arg, 0.000001f, 1); return 0;
    case KEY_SEED: o->sampling.seed = option_unsigned(state, "--seed", arg); return 0;
    case KEY_MAX_TOKENS:
        o->sampling.max_tokens = (int)option_integer(state, "--max-tokens", arg, 0, 1000000000);
        return 0;
    case KEY_CONTEXT: o->engine.context.n_ctx = (size_t)option_integer(state, "--context", arg, 1, 1 << 30); return 0;
    case KEY_INDEXER: o->chat.always_index = option_choice(state, "--indexer", arg, indexers) == 1; return 0;
    case KEY_NUMERICS: o->chat.official_numerics = option_choice(state, "--numerics", arg, numerics) == 1; return 0;
    case KEY_STATS: o->stats = true; return 0;
    case KEY_STOP:
        if (!*arg)
            argp_error(state, "--stop needs a text");
        if (o->sampling.n_stop == TALK_MAX_STOPS)
            argp_error(state, "more than %d times --stop", TALK_MAX_STOPS);
        o->stops[o->sampling.n_stop++] = arg;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{.argp = &engine_argp}, {0}};
const struct argp talk_argp = {.options = options, .parser = parse, .children = children};

struct talk_options talk_defaults(void) { return (struct talk_options){.sampling = fathom_sampling_defaults()}; }

bool talk_open(struct talk *talk, const struct talk_options *o)
{
    *talk = (struct talk){0};
    const char *source;
    char *path = model_path(o->engine.model, &source);
    if (!path)
        return false;
    struct fathom_err err = {0};
    bool ok = fathom_model_open(path, &talk->model, &err) == FATHOM_OK &&
              fathom_chat_create(talk->model, &o->engine.context, &o->chat, &talk->chat, &err) == FATHOM_OK;
    if (!ok)
        print_model_error(path, source, &err);
    ok = ok && output_open(&talk->out, NULL);
    if (!ok)
        talk_close(talk);
    free(path);
    return ok;
}

bool talk_close(struct talk *talk)
{
    bool ok = !talk->out.file || output_close(&talk->out, true);
    fathom_chat_destroy(talk->chat);
    fathom_model_close(talk->model);
    *talk = (struct talk){0};
    return ok;
}

static bool on_prefill(void *user, size_t done, size_t total)
{
    (void)user, (void)done, (void)total;
    return !interrupt_signal();
}

struct writing {
    struct talk *talk;
    bool thought; /* the last text was a thought */
};

/* Thoughts; what could steer a terminal becomes a question mark. */
static void write_thought(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool steers = ((unsigned char)text[i] < 0x20 && text[i] != '\n' && text[i] != '\t') || text[i] == 0x7f;
        fputc(steers ? '?' : text[i], stderr);
    }
}

static bool on_text(void *user, bool thinking, const char *text, size_t n)
{
    struct writing *w = user;
    if (w->thought && !thinking)
        fputc('\n', stderr);
    w->thought = thinking;
    if (thinking)
        write_thought(text, n);
    else if (!output_write(&w->talk->out, text, n) || !output_flush(&w->talk->out))
        return false;
    return !interrupt_signal();
}

static void print_stats(const struct fathom_reply *r)
{
    static const char *const ends[] = {[FATHOM_REPLY_DONE] = "done",
                                       [FATHOM_REPLY_STOPPED] = "stopped",
                                       [FATHOM_REPLY_LIMIT] = "limit",
                                       [FATHOM_REPLY_CONTEXT] = "context"};
    fprintf(stderr,
            "{\"end\":\"%s\",\"prompt_tokens\":%zu,\"new_tokens\":%zu,\"output_tokens\":%zu,\"prefill_ms\":%.1f,"
            "\"decode_ms\":%.1f,\"indexed_queries\":%llu,\"unindexed_queries\":%llu,\"scored_candidates\":%llu,"
            "\"state_bytes\":%zu}\n",
            ends[r->end], r->n_prompt_tokens, r->n_new_tokens, r->n_output_tokens, r->prefill_ms, r->decode_ms,
            (unsigned long long)r->indexed_queries, (unsigned long long)r->unindexed_queries,
            (unsigned long long)r->scored_candidates, r->state_bytes);
}

enum fathom_status talk_say(struct talk *talk, const struct talk_options *o, const char *text, size_t n)
{
    struct writing writing = {.talk = talk};
    struct fathom_chat_callbacks callbacks = {&writing, on_prefill, on_text};
    struct fathom_sampling sampling = o->sampling;
    struct fathom_reply reply;
    struct fathom_err err = {0};
    sampling.stop = o->stops;
    enum fathom_status status = fathom_chat_say(talk->chat, text, n, &sampling, &callbacks, &reply, &err);
    if (writing.thought)
        fputc('\n', stderr);
    output_end_line(&talk->out);
    if (!output_flush(&talk->out))
        return FATHOM_EIO;
    if (status && status != FATHOM_ECANCELLED)
        print_error("%s", err.message);
    else if (o->stats)
        print_stats(&reply);
    return status;
}
