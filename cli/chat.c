/* fathom chat: a conversation, a line a turn. */
#include "command.h"
#include "interrupt.h"
#include "talk.h"
#include "terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct talk_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = o; return 0;
    case ARGP_KEY_ARG: argp_error(state, "chat reads lines, not '%s'", arg); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* Lines until the input ends. An interrupt ends the reply that is being written, or, between replies, the program. */
static int converse(struct talk *talk, struct talk_options *o)
{
    bool asks = isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
    char *line = NULL;
    size_t capacity = 0;
    ssize_t n;
    int status = EXIT_DONE;
    for (;;) {
        if (asks)
            fputs("> ", stderr);
        n = getline(&line, &capacity, stdin);
        if (n < 0)
            break;
        n -= n > 0 && line[n - 1] == '\n';
        if (n == 0)
            continue;
        interrupt_setup();
        enum fathom_status said = talk_say(talk, o, line, (size_t)n);
        bool is_term = interrupt_signal() && !interrupt_is_key();
        int number = interrupt_signal();
        interrupt_reset();
        o->sampling.seed++; /* not the same choices for every turn */
        if (is_term) {
            status = EXIT_SIGNAL + number;
            break;
        }
        if (said == FATHOM_EIO) {
            status = EXIT_FAILED;
            break;
        }
        if (said && said != FATHOM_ECANCELLED && !asks)
            status = EXIT_FAILED;
    }
    if (asks)
        fputc('\n', stderr);
    free(line);
    return status;
}

int command_chat(int argc, char **argv)
{
    static const char doc[] =
        "Talks with DeepSeek-V4: a line is what you say, the reply follows. Ctrl-C ends a reply and keeps the "
        "conversation; at the prompt it ends the program, as Ctrl-D does.\n"
        "\n"
        "  fathom chat -m DeepSeek-V4-Flash\n"
        "  fathom chat -m DeepSeek-V4-Flash --thinking --system 'Answer in French.'";
    static const struct argp_child children[] = {{.argp = &talk_argp}, {0}};
    static const struct argp argp = {.parser = parse, .doc = doc, .children = children};
    struct talk_options o = talk_defaults();
    struct talk talk;
    options_parse(&argp, argc, argv, &o);
    if (!talk_open(&talk, &o))
        return EXIT_FAILED;
    int status = converse(&talk, &o);
    return talk_close(&talk) || status ? status : EXIT_FAILED;
}
