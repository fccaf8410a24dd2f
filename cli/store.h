/* The job file: which documents a job has, and the pages of them that are read. An SQLite database, written page by page,
 * so that a job which was killed goes on where it was. One process at a time has it. Without SQLite in the build
 * (store_none.c) it cannot be opened.
 *
 * What goes wrong is said by the function that meets it, and it returns false. */
#ifndef FATHOM_CLI_STORE_H
#define FATHOM_CLI_STORE_H

#include <fathom.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

/* Something that results depend on, as text. */
struct store_setting {
    const char *name;
    char *value;
};

/* Opens or begins a job. A job that was begun with other settings is refused, and so is one that another process has. */
bool store_open(const char *path, const struct store_setting *settings, size_t n, struct store **out);
void store_close(struct store *store); /* takes NULL */

/* Forgets pages and documents that failed, so that they are read again. */
bool store_forget_failed(struct store *store);

struct store_document {
    int64_t id;
    char *name;       /* what its outputs are called, "" when it is new; owned                                */
    size_t n_pages;   /* 0 while no page was read                                                             */
    bool complete;    /* every page was read, or nothing more can be, and what was asked for then was written */
    char error[1024]; /* why not every page could be read; "" when they could                                */
};

/* Calls back with every name that outputs have; stops when it returns false. */
bool store_names(struct store *store, bool (*take)(void *user, const char *name), void *user);

/* Finds the document, or adds it. When the file is another one since (size or time), its pages are forgotten. */
bool store_document_begin(struct store *store, const char *path, struct store_document *out);
bool store_document_name(struct store *store, const struct store_document *document, const char *name);
bool store_document_complete(struct store *store, const struct store_document *document, const char *error);
/* Its pages are there, but not all that is to be written. */
bool store_document_reopen(struct store *store, const struct store_document *document);
/* Forgets its pages and that it was complete. */
bool store_document_forget(struct store *store, const struct store_document *document);
void store_document_release(struct store_document *document);

/* How many pages it has in each status. */
bool store_count(struct store *store, const struct store_document *document, size_t by_status[FATHOM_PAGE_FAILED + 1]);

/* The numbers of the pages that are there, rising; the caller's to free. */
bool store_numbers(struct store *store, const struct store_document *document, size_t **numbers, size_t *n);

/* Keeps a page: all of it but pixels, and what follows from its raw text. */
bool store_page_put(struct store *store, const struct store_document *document, const struct fathom_page *page);

/* The page again, put together by fathom_page_restore; for fathom_page_free. */
bool store_page_get(struct store *store, const struct store_document *document, size_t number,
                    struct fathom_page **out);

#endif
