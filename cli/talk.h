/* What fathom chat and fathom generate share: their options, and a reply as it is written. */
#ifndef FATHOM_CLI_TALK_H
#define FATHOM_CLI_TALK_H

#include "options.h"
#include "output.h"

#define TALK_MAX_STOPS 16

struct talk_options {
    struct engine_options engine;
    struct fathom_chat_options chat;
    struct fathom_sampling sampling;
    const char *stops[TALK_MAX_STOPS];
    const char *prompt; /* generate: -p; NULL: standard input */
    bool stats;
};

/* Child parser; its input is a struct talk_options with the defaults of talk_defaults. */
extern const struct argp talk_argp;
struct talk_options talk_defaults(void);

struct talk {
    struct fathom_model *model;
    struct fathom_chat *chat;
    struct output out; /* standard output */
};

/* Says what is wrong and returns false if it cannot be had. */
bool talk_open(struct talk *talk, const struct talk_options *options);
/* False: standard output did not take everything, which has been told. */
bool talk_close(struct talk *talk);

/* Says text and writes the reply to standard output as it comes, thoughts to standard error. Interrupts cancel it. Anything
 * but FATHOM_OK and FATHOM_ECANCELLED has been told. */
enum fathom_status talk_say(struct talk *talk, const struct talk_options *options, const char *text, size_t n);

#endif
