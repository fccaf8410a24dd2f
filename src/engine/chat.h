/* The inside of a conversation: its state and the tokens that are in it (chat_state.c), and what was said (chat.c). */
#ifndef FATHOM_ENGINE_CHAT_H
#define FATHOM_ENGINE_CHAT_H

#include "engine/model.h"
#include "text/chat_prompt.h"

struct chat_state {
    const struct v4 *model; /* borrowed */
    const struct kernels *kernels;
    struct pool *pool; /* owned */
    struct arena arena;
    struct v4_state v4;
    struct v4_snapshot saved; /* the state before the last prompt's last token; data NULL: none */
    struct tokens fed;        /* the tokens in the state                                        */
    float *logits;            /* [vocab_size], owned: those after the last token                */
};

/* As fathom_chat_create; c can be released also when this fails. */
enum fathom_status chat_state_create(struct chat_state *c, const struct v4 *model,
                                     const struct fathom_context_options *options, struct fathom_err *err);
void chat_state_release(struct chat_state *c);

/* Makes the state that of the prompt: goes back as far as it has to and appends the rest, *n_new tokens. keep saves the
 * state before the last token. When it fails, the state is that of some beginning of the prompt, or of nothing. */
enum fathom_status chat_state_prompt(struct chat_state *c, const struct tokens *prompt, bool keep,
                                     const struct fathom_chat_callbacks *callbacks, size_t *n_new,
                                     struct fathom_err *err);

/* Appends one token. */
enum fathom_status chat_state_step(struct chat_state *c, int32_t id, struct fathom_err *err);

void chat_state_reset(struct chat_state *c);

#endif
