/* Which files are to be read. */
#ifndef FATHOM_CLI_INPUTS_H
#define FATHOM_CLI_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct input {
    char *path; /* owned; "-" is standard input                                            */
    char *name; /* in path: from the folder that was given on, else behind the last slash */
    dev_t device;
    ino_t inode; /* 0: not there */
};

struct inputs {
    struct input *files;
    size_t n, capacity;
    bool failed; /* something could not be listed, which was said */
};

/* Adds what an argument stands for: a file, "-", a folder (what lies in it and below and has the ending of a picture or
 * document, in the order of its names; hidden entries and `except`, a folder or NULL, are passed over), or, when no file
 * has that name, a pattern of the shell. What matches nothing is added as it is: reading it says why it cannot be read. */
void inputs_add(struct inputs *in, const char *argument, const char *except);

/* The same for every name in a list, NUL-separated if it holds a NUL, else one a line; "-" is standard input. Patterns are
 * not looked for. */
void inputs_add_list(struct inputs *in, const char *list, const char *except);

/* Whether path is one of the files. */
bool inputs_have(const struct inputs *in, const char *path);

void inputs_free(struct inputs *in);

/* How many bytes at the end of a name are the ending of a picture or document, the dot included; 0: none. */
size_t inputs_extension(const char *name);

#endif
