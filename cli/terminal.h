/* What a person sees on standard error: errors always, progress and timings only on a terminal. */
#ifndef FATHOM_CLI_TERMINAL_H
#define FATHOM_CLI_TERMINAL_H

#include <fathom.h>

struct terminal {
    bool talks;   /* progress and timings are wanted, and standard error is a terminal */
    bool draws;   /* it can also redraw a line (TERM is not "dumb")                    */
    bool colours; /* and colour it (NO_COLOR is unset or empty)                        */
    bool drawn;   /* a progress line stands there now                                  */
    int64_t drawn_ms;
};

struct terminal terminal_init(bool quiet);

/* Draws or redraws the progress line, cut to the width of the terminal, at most ten times a second. */
void terminal_progress(struct terminal *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Takes the progress line away, before anything else is written to the same screen. */
void terminal_clear(struct terminal *t);

/* One line of information, only for a terminal. */
void terminal_note(struct terminal *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "fathom: ..." on a line of its own, always. Control characters become '?': the message may quote hostile input. */
void terminal_error(struct terminal *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What the library said about a file or folder, as a text that the caller frees, NULL when memory is short. The file is
 * named once: not all messages name it themselves. page 0: the file as a whole. */
char *file_error(const char *path, size_t page, const struct fathom_err *err);

/* The same on a line of its own. */
void terminal_file_error(struct terminal *t, const char *path, size_t page, const struct fathom_err *err);

/* The same for a model folder; source: " of FATHOM_MODEL", or "". */
void print_model_error(const char *path, const char *source, const struct fathom_err *err);

/* terminal_error for the program's parts that draw nothing. */
void print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A line on standard error that is no error, terminal or not. */
void print_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
