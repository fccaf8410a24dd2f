/* One run of fathom ocr: what its ways of reading share. */
#ifndef FATHOM_CLI_SESSION_H
#define FATHOM_CLI_SESSION_H

#include "inputs.h"
#include "ocr_options.h"
#include "output.h"
#include "report.h"

struct session {
    const struct ocr_options *options;
    struct fathom_context *context;
    const struct inputs *inputs;
    struct report report;
    struct output out; /* standard output or the file of -o, where results are not files of their own */
    bool keep;         /* something worth keeping was written to it                                    */
    bool cut;          /* an interrupt ends the page at hand                                           */
    bool broken;       /* the outputs or the job file failed, which was said: nothing more can be done */
};

/* Whether the page at hand has to end; remembered as cut. */
bool session_interrupted(struct session *s);

/* Reads one file, asking for a password where there is somebody to ask. */
enum fathom_status session_read_file(struct session *s, const char *path, const struct fathom_read_options *options,
                                     const struct fathom_callbacks *callbacks, struct fathom_err *err);

/* --stats: what a page cost, on standard error. */
void session_stats(struct session *s, const char *path, const struct fathom_page *page);

#endif
