/* The options of fathom ocr. */
#ifndef FATHOM_CLI_OCR_OPTIONS_H
#define FATHOM_CLI_OCR_OPTIONS_H

#include "options.h"

struct ocr_options {
    struct engine_options engine;
    struct fathom_read_options read; /* prompt and password point to these or to the environment    */
    char *prompt;                    /* owned; NULL: the library's own                              */
    char *password;                  /* owned; NULL: none given                                     */
    bool task, own_prompt;           /* which of the two options was given                          */
    bool locate;                     /* the answer is boxes: Markdown has none, so they are listed  */
    bool raw, overlay, stats, quiet, no_header, retry_failed;
    unsigned formats;       /* a set (formats.h)                      */
    const char *output;     /* NULL: standard output                   */
    const char *job;        /* NULL: none                              */
    size_t shard, n_shards; /* files shard, shard + n_shards, ... only */
    const char *files_from; /* NULL: none                              */
    char **files;
    size_t n_files;
};

/* Usage errors exit. Everything but the owned texts is borrowed from argv. */
void ocr_options_parse(struct ocr_options *o, int argc, char **argv);
void ocr_options_free(struct ocr_options *o);

/* As --mode names it. */
const char *ocr_mode_name(enum fathom_mode mode);

#endif
