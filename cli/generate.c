/* fathom generate: one prompt, one reply. */
#include "command.h"
#include "interrupt.h"
#include "talk.h"
#include "terminal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PROMPT_BYTES ((size_t)64 << 20)

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct talk_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = o; return 0;
    case 'p': o->prompt = arg; return 0;
    case ARGP_KEY_ARG: argp_error(state, "a prompt is given with -p or on standard input, not as '%s'", arg); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* All of standard input without the line feed at its end, the caller's; NULL after saying why. */
static char *read_input(size_t *n)
{
    char *text = NULL;
    size_t capacity = 0;
    *n = 0;
    for (;;) {
        if (*n == capacity) {
            char *more = realloc(text, capacity = capacity ? 2 * capacity : 65536);
            if (!more)
                break;
            text = more;
        }
        size_t got = fread(text + *n, 1, capacity - *n, stdin);
        *n += got;
        if (got == 0 && !ferror(stdin)) {
            *n -= *n > 0 && text[*n - 1] == '\n';
            return text;
        }
        if (got == 0 || *n > MAX_PROMPT_BYTES)
            break;
    }
    if (*n > MAX_PROMPT_BYTES)
        print_error("standard input has more than %zu MiB", MAX_PROMPT_BYTES >> 20);
    else
        print_error("standard input: cannot read: %s", strerror(errno));
    free(text);
    return NULL;
}

int command_generate(int argc, char **argv)
{
    static const struct argp_option option_table[] = {
        {.name = "prompt", .key = 'p', .arg = "TEXT", .doc = "What the user says (default: standard input)"},
        {0},
    };
    static const char doc[] = "Writes DeepSeek-V4's reply to a prompt.\n"
                              "\n"
                              "  fathom generate -m DeepSeek-V4-Flash -p 'Why is the sky blue?'\n"
                              "  fathom generate -m DeepSeek-V4-Flash --thinking < question.txt";
    static const struct argp_child children[] = {{.argp = &talk_argp}, {0}};
    static const struct argp argp = {.options = option_table, .parser = parse, .doc = doc, .children = children};
    struct talk_options o = talk_defaults();
    struct talk talk;
    options_parse(&argp, argc, argv, &o);
    size_t n = o.prompt ? strlen(o.prompt) : 0;
    char *input = o.prompt ? NULL : read_input(&n);
    if (!o.prompt && !input)
        return EXIT_FAILED;
    enum fathom_status status = FATHOM_EIO;
    if (talk_open(&talk, &o)) {
        interrupt_setup();
        status = talk_say(&talk, &o, o.prompt ? o.prompt : input, n);
        if (!talk_close(&talk) && !status)
            status = FATHOM_EIO;
    }
    free(input);
    if (status == FATHOM_ECANCELLED && interrupt_signal())
        return EXIT_SIGNAL + interrupt_signal();
    return status ? EXIT_FAILED : EXIT_DONE;
}
