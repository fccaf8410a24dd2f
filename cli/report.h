/* What a person is told while pages are read, and at the end: progress, how each page ended, failures, a summary. */
#ifndef FATHOM_CLI_REPORT_H
#define FATHOM_CLI_REPORT_H

#include "terminal.h"
#include "text.h"

#include <fathom.h>
#include <stddef.h>

struct report {
    struct terminal terminal;
    bool is_job; /* many pages for files: lines about documents and a summary, also where there is no terminal */
    size_t n_files, n_files_done, n_files_failed;
    size_t by_status[FATHOM_PAGE_FAILED + 1]; /* pages, those of earlier runs included */
    size_t n_read;                            /* pages that this run read              */
    size_t n_sought;                          /* pages to read in the files done       */
    const char *pages;                        /* which of each file, as in --pages     */
    const char *file;                         /* at hand; borrowed                     */
    size_t page, n_pages;                     /* of it; 0: not known yet               */
    size_t file_sought, file_failed;          /* its pages to read, and that failed    */
    struct text failures;                     /* lines for the summary */
    size_t n_failures;
    double start_ms, line_ms;
};

/* pages: borrowed. quiet: neither progress nor lines nor a summary, errors only. */
void report_init(struct report *r, size_t n_files, const char *pages, bool is_job, bool quiet);
void report_free(struct report *r);

void report_file(struct report *r, const char *path);

/* A page comes; of it only number and n_pages are looked at. */
void report_page_begins(struct report *r, const struct fathom_page *page);

/* Progress within a page. */
void report_stage(struct report *r, const char *stage, size_t done, size_t total);

/* How a page ended. cut: an interrupt ended it. */
void report_page(struct report *r, const struct fathom_page *page, bool cut);

/* Pages of the file at hand that an earlier run read. */
void report_kept(struct report *r, size_t n_pages, const size_t by_status[FATHOM_PAGE_FAILED + 1]);

/* The file at hand as a whole, or what came behind its last good page, could not be read. */
void report_file_failed(struct report *r, const struct fathom_err *err);

/* The file at hand is through. */
void report_file_done(struct report *r);

/* At the end. */
void report_summary(struct report *r);

/* Whether a file or a page failed. */
bool report_has_failures(const struct report *r);

#endif
