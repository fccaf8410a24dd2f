/* What the two halves of the job file share. */
#ifndef FATHOM_CLI_STORE_SQLITE_H
#define FATHOM_CLI_STORE_SQLITE_H

#include "store.h"

#include <sqlite3.h>

struct store {
    sqlite3 *db;
    const char *path; /* borrowed */
};

/* Says what SQLite says; false. */
bool store_fail(const struct store *store);

/* Runs statements that give no rows. */
bool store_run(struct store *store, const char *sql);

/* NULL after saying why. */
sqlite3_stmt *store_prepare(struct store *store, const char *sql);

/* Runs a prepared statement to its end and finalises it. */
bool store_finish(struct store *store, sqlite3_stmt *statement);

/* The table of pages, for a new job. */
extern const char store_page_schema[];

#endif
