/* The options of fathom ocr. */
#ifndef FATHOM_CLI_OCR_OPTIONS_H
#define FATHOM_CLI_OCR_OPTIONS_H

#include "options.h"

struct ocr_options {
    struct engine_options engine;
    struct fathom_read_options read; /* prompt points to the prompt below                           */
    char *prompt;                    /* owned; NULL: the library's own                              */
    bool task, own_prompt;           /* which of the two options was given                          */
    bool locate;                     /* the answer is boxes: Markdown has none, so they are listed  */
    bool raw, json, stats, quiet, no_header;
    const char *output; /* NULL: standard output */
    char **files;
    size_t n_files;
};

/* Usage errors exit. Everything but the prompt is borrowed from argv. */
void ocr_options_parse(struct ocr_options *o, int argc, char **argv);
void ocr_options_free(struct ocr_options *o);

#endif
