/* A file that takes the place of another one only when it is complete. */
#ifndef FATHOM_CLI_REPLACE_H
#define FATHOM_CLI_REPLACE_H

#include <stdbool.h>
#include <stdio.h>

struct replacement {
    FILE *file;      /* to write to                                          */
    char *target;    /* links followed; NULL when path is written directly   */
    char *temporary; /* beside the target; NULL when path is written directly */
};

/* Opens path for writing. If it is a regular file or not there, what is written goes to a temporary file beside it,
 * which gets the old one's permissions; pipes and devices are written directly, and so is a file in a folder that takes
 * no new ones. Waits for the reader of a named pipe, but not through an interrupt. On failure errno tells (EINTR after an
 * interrupt) and nothing is left. */
bool replace_open(struct replacement *r, const char *path);

/* Both close the file. commit puts the new one in the place of the old one; false and errno if it could not be written
 * or put there. discard leaves the old one as it was. */
bool replace_commit(struct replacement *r);
void replace_discard(struct replacement *r);

#endif
