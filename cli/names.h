/* What the files that are written for a document are called. */
#ifndef FATHOM_CLI_NAMES_H
#define FATHOM_CLI_NAMES_H

#include <stdbool.h>

/* Names that are taken. Starts as {0}. */
struct names {
    void *tree;
};

/* A name for what is written for an input: its own without the ending, cut where the file system would not take it, with
 * -2, -3, ... behind it when it is taken. The caller's to free; NULL when memory is short. */
char *names_make(struct names *names, const char *input);

/* Takes a name that was made in an earlier run; false when memory is short. */
bool names_take(struct names *names, const char *name);

void names_free(struct names *names);

#endif
