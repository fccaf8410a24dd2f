/* DeepSeek-V4's conversations as tokens (spec deepseek-v4 §5.2), as far as they need no fixed text. What people and programs
 * write is ordinary text, whatever it looks like: only this file puts special tokens into a prompt. */
#ifndef FATHOM_TEXT_CHAT_PROMPT_H
#define FATHOM_TEXT_CHAT_PROMPT_H

#include "text/tokenizer.h"

enum chat_role {
    CHAT_SYSTEM,
    CHAT_USER,
    CHAT_DEVELOPER, /* as a user */
    CHAT_REMINDER,  /* latest_reminder */
    CHAT_TOOL,      /* the result of a call: becomes part of the user's turn */
    CHAT_ASSISTANT,
};

enum chat_task { CHAT_NO_TASK, CHAT_ACTION, CHAT_QUERY, CHAT_AUTHORITY, CHAT_DOMAIN, CHAT_TITLE, CHAT_READ_URL };

struct chat_argument {
    const char *name, *value;
    bool is_json; /* else a string, as it is */
};

struct chat_call { /* of a tool, by the assistant */
    const char *id, *name;
    const struct chat_argument *arguments;
    size_t n_arguments;
};

/* All pointers are borrowed. Texts are UTF-8 and may be NULL when n is 0. */
struct chat_message {
    enum chat_role role;
    const char *content;
    size_t n_content;
    const struct tokens *ids;       /* assistant: the content as the model wrote it; NULL: content                   */
    const struct tokens *reasoning; /* assistant: what it thought before; NULL: nothing                              */
    const struct chat_call *calls;  /* assistant                                                                     */
    size_t n_calls;
    const char *call_id; /* tool: the call that it answers; NULL: in the order of the messages                       */
    enum chat_task task; /* user and developer, and title of an assistant: what the model is to do besides answering */
};

struct chat_mode {
    bool thinking;
    bool keep_reasoning;       /* also that of turns before the last user's                               */
    const struct tokens *head; /* right behind the first token: the text of maximum effort; NULL: nothing */
};

/* Appends the whole prompt, up to where the model is to go on. Fails with FATHOM_EUNSUPPORTED when the tokenizer lacks a
 * special token that is needed. */
enum fathom_status chat_prompt(const struct tokenizer *tok, const struct chat_message *messages, size_t n,
                               struct chat_mode mode, struct tokens *out, struct fathom_err *err);

/* The tokens that end a turn and the thoughts before it. */
#define CHAT_END "<｜end▁of▁sentence｜>"
#define CHAT_THINK_END "</think>"

#endif
