/* The commands. Each gets its own arguments (argv[0] is "fathom COMMAND") and returns the exit status. */
#ifndef FATHOM_CLI_COMMAND_H
#define FATHOM_CLI_COMMAND_H

enum exit_status {
    EXIT_DONE = 0,
    EXIT_FAILED = 1, /* a file, a page, the model or the output failed */
    EXIT_USAGE = 2,
    EXIT_SIGNAL = 128, /* and the signal's number */
};

struct command {
    const char *name;
    char *program; /* how usage messages call it; never written to */
    int (*run)(int argc, char **argv);
};

/* NULL if there is none of that name. */
const struct command *command_find(const char *name);

int command_ocr(int argc, char **argv);
int command_chat(int argc, char **argv);
int command_generate(int argc, char **argv);
int command_inspect(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_help(int argc, char **argv);

#endif
