/* Where results go: standard output or a file, every write checked. */
#ifndef FATHOM_CLI_OUTPUT_H
#define FATHOM_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "replace.h"

struct output {
    FILE *file;       /* of the replacement, or standard output                      */
    const char *path; /* borrowed; NULL: standard output                             */
    struct replacement replacement;
    int error;        /* errno of the first write that failed; later ones do nothing */
    bool is_terminal; /* control characters of a page must not reach it              */
    bool mid_line;    /* the last byte written was no line feed                      */
};

/* Arranges that whatever still waits for standard output when the program exits is checked as well: help goes to full
 * disks too. Call once, first. */
void output_setup(void);

/* path NULL: standard output. A file takes its place when it is closed. Says what is wrong, unless an interrupt came
 * while a named pipe had no reader, and returns false. */
bool output_open(struct output *out, const char *path);

/* Write n bytes; flush hands over what was written, so that a reader sees text as it is generated. False once anything
 * has failed. */
bool output_write(struct output *out, const char *bytes, size_t n);
bool output_flush(struct output *out);

/* Ends the line if one is begun. */
bool output_end_line(struct output *out);

/* Flushes, closes, and says what went wrong, once. True if every byte was taken. A file that was there before stays as
 * it was when something went wrong, or when keep is false. */
bool output_close(struct output *out, bool keep);

#endif
