/* What the commands' option parsers share. */
#ifndef FATHOM_CLI_OPTIONS_H
#define FATHOM_CLI_OPTIONS_H

#include <argp.h>
#include <fathom.h>

/* Parses with argp: usage errors exit with EXIT_USAGE, --help and --version with EXIT_DONE. */
void options_parse(const struct argp *argp, int argc, char **argv, void *input);

/* A whole decimal number from low to high, nothing before or after it; anything else is a usage error of `option`. */
int64_t option_integer(struct argp_state *state, const char *option, const char *s, int64_t low, int64_t high);
uint64_t option_unsigned(struct argp_state *state, const char *option, const char *s);
float option_float(struct argp_state *state, const char *option, const char *s, float low, float high);

/* The index of s in the NULL-terminated list of names. */
int option_choice(struct argp_state *state, const char *option, const char *s, const char *const *names);

/* s itself; an empty one is a usage error: "--output needs the name of a file". */
const char *option_name(struct argp_state *state, const char *option, const char *s, const char *what);

/* Options of every command that runs a model: -m, --threads, --dtype, --isa. A child parser; its input is this. */
struct engine_options {
    const char *model; /* NULL: FATHOM_MODEL or the built-in one */
    struct fathom_context_options context;
};
extern const struct argp engine_argp;

/* An opened model and a context on it. */
struct engine {
    struct fathom_model *model;
    struct fathom_context *context;
    char *path; /* of the model, owned */
};

/* Says what is wrong and returns false if it cannot be had. */
bool engine_open(struct engine *engine, const struct engine_options *options);
void engine_close(struct engine *engine);

#endif
