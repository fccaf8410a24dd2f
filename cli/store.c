#include "store.h"

#include "store_sqlite.h"
#include "terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define APPLICATION_ID 0x66746d6a /* "ftmj", in the file's header: a job and no other database */
#define SCHEMA 1

bool store_fail(const struct store *store)
{
    int code = sqlite3_errcode(store->db);
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
        print_error("'%s': another process works on this job", store->path);
    else if (code == SQLITE_NOTADB)
        print_error("'%s': not a job file", store->path);
    else
        print_error("'%s': %s", store->path, sqlite3_errmsg(store->db));
    return false;
}

bool store_run(struct store *store, const char *sql)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK || store_fail(store);
}

sqlite3_stmt *store_prepare(struct store *store, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) != SQLITE_OK)
        store_fail(store);
    return statement;
}

bool store_finish(struct store *store, sqlite3_stmt *statement)
{
    bool ok = statement && sqlite3_step(statement) == SQLITE_DONE;
    if (statement && !ok)
        store_fail(store);
    sqlite3_finalize(statement);
    return ok;
}

static const char schema[] = "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
                             "CREATE TABLE documents (id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE,"
                             " name BLOB NOT NULL DEFAULT '', size INTEGER, mtime_ns INTEGER,"
                             " complete INTEGER NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT '');";

static bool get_integer(struct store *store, const char *sql, int64_t *value)
{
    sqlite3_stmt *statement = store_prepare(store, sql);
    bool ok = statement && sqlite3_step(statement) == SQLITE_ROW;
    if (ok)
        *value = sqlite3_column_int64(statement, 0);
    else if (statement)
        store_fail(store);
    sqlite3_finalize(statement);
    return ok;
}

static bool put_setting(struct store *store, const struct store_setting *setting)
{
    sqlite3_stmt *statement = store_prepare(store, "INSERT INTO settings VALUES (?, ?)");
    if (!statement)
        return false;
    sqlite3_bind_text(statement, 1, setting->name, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, setting->value, -1, SQLITE_STATIC);
    return store_finish(store, statement);
}

static bool begin_job(struct store *store, const struct store_setting *settings, size_t n)
{
    char versions[100];
    snprintf(versions, sizeof versions, "PRAGMA application_id = %d; PRAGMA user_version = %d;", APPLICATION_ID,
             SCHEMA);
    if (!store_run(store, schema) || !store_run(store, store_page_schema) || !store_run(store, versions))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!put_setting(store, &settings[i]))
            return false;
    return true;
}

static bool check_setting(struct store *store, const struct store_setting *setting)
{
    sqlite3_stmt *statement = store_prepare(store, "SELECT value FROM settings WHERE name = ?");
    if (!statement)
        return false;
    sqlite3_bind_text(statement, 1, setting->name, -1, SQLITE_STATIC);
    int step = sqlite3_step(statement);
    const char *value = step == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : "";
    bool same = value && strcmp(value, setting->value) == 0;
    if (step != SQLITE_ROW && step != SQLITE_DONE)
        store_fail(store);
    else if (!same)
        print_error("'%s': the job was begun with %s '%s', not '%s'; give the same again, or another job file",
                    store->path, setting->name, value ? value : "", setting->value);
    sqlite3_finalize(statement);
    return same;
}

static bool check_job(struct store *store, const struct store_setting *settings, size_t n)
{
    int64_t application = 0, version = 0;
    if (!get_integer(store, "PRAGMA application_id", &application) ||
        !get_integer(store, "PRAGMA user_version", &version))
        return false;
    if (application != APPLICATION_ID || version != SCHEMA) {
        print_error("'%s': %s", store->path,
                    application == APPLICATION_ID ? "a job of another version of fathom" : "not a job file");
        return false;
    }
    for (size_t i = 0; i < n; i++)
        if (!check_setting(store, &settings[i]))
            return false;
    return true;
}

bool store_open(const char *path, const struct store_setting *settings, size_t n, struct store **out)
{
    int64_t n_tables = 0;
    struct store *store = calloc(1, sizeof *store);
    *out = NULL;
    if (!store) {
        print_error("out of memory");
        return false;
    }
    store->path = path;
    /* An exclusive lock, once taken, is kept until the file is closed; the system lets go of it when a process dies. A
     * page that was committed survives the process; only a power failure may cost the last ones. */
    bool ok = sqlite3_open_v2(path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) == SQLITE_OK ||
              store_fail(store);
    ok = ok && store_run(store, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = NORMAL; BEGIN EXCLUSIVE") &&
         get_integer(store, "SELECT count(*) FROM sqlite_master", &n_tables) &&
         (n_tables ? check_job(store, settings, n) : begin_job(store, settings, n)) && store_run(store, "COMMIT");
    if (ok)
        *out = store;
    else
        store_close(store);
    return ok;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    sqlite3_close(store->db);
    free(store);
}

bool store_forget_failed(struct store *store)
{
    return store_run(store, "BEGIN; UPDATE documents SET complete = 0, error = '' WHERE error <> '' OR id IN"
                            " (SELECT document FROM pages WHERE status = 'failed');"
                            "DELETE FROM pages WHERE status = 'failed'; COMMIT");
}

bool store_names(struct store *store, bool (*take)(void *user, const char *name), void *user)
{
    sqlite3_stmt *statement = store_prepare(store, "SELECT CAST(name AS TEXT) FROM documents WHERE name <> ''");
    int step = SQLITE_ERROR;
    bool taken = true;
    while (statement && taken && (step = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        taken = name && take(user, name);
    }
    if (statement && taken && step != SQLITE_DONE)
        taken = store_fail(store);
    sqlite3_finalize(statement);
    return statement && taken;
}

static bool add_document(struct store *store, const char *path, const struct stat *st)
{
    sqlite3_stmt *statement =
        store_prepare(store, "INSERT INTO documents (path, size, mtime_ns) VALUES (?1, ?2, ?3)"
                             " ON CONFLICT (path) DO UPDATE SET size = ?2, mtime_ns = ?3, complete = 0, error = ''");
    if (!statement)
        return false;
    sqlite3_bind_blob64(statement, 1, path, strlen(path), SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, st->st_size);
    sqlite3_bind_int64(statement, 3, (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec);
    return store_finish(store, statement);
}

/* Whether a row was found is told by out->id. */
static bool find_document(struct store *store, const char *path, struct store_document *out, struct stat *st)
{
    sqlite3_stmt *statement =
        store_prepare(store, "SELECT id, CAST(name AS TEXT), complete, error, size, mtime_ns,"
                             " (SELECT max(n_pages) FROM pages WHERE document = id) FROM documents WHERE path = ?");
    if (!statement)
        return false;
    sqlite3_bind_blob64(statement, 1, path, strlen(path), SQLITE_STATIC);
    int step = sqlite3_step(statement);
    *out = (struct store_document){0};
    if (step == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(statement, 1);
        const char *error = (const char *)sqlite3_column_text(statement, 3);
        int64_t mtime_ns = sqlite3_column_int64(statement, 5);
        out->id = sqlite3_column_int64(statement, 0);
        out->name = strdup(name ? name : "");
        out->complete = sqlite3_column_int(statement, 2);
        snprintf(out->error, sizeof out->error, "%s", error ? error : "");
        st->st_size = sqlite3_column_int64(statement, 4);
        st->st_mtim = (struct timespec){mtime_ns / 1000000000, mtime_ns % 1000000000};
        out->n_pages = (size_t)sqlite3_column_int64(statement, 6);
    }
    bool ok = step == SQLITE_DONE || (step == SQLITE_ROW && out->name) || store_fail(store);
    sqlite3_finalize(statement);
    return ok;
}

bool store_document_begin(struct store *store, const char *path, struct store_document *out)
{
    struct stat now = {0}, then = {0};
    stat(path, &now); /* a file that is not there fails when it is read */
    if (!find_document(store, path, out, &then))
        return false;
    bool same = now.st_size == then.st_size && now.st_mtim.tv_sec == then.st_mtim.tv_sec &&
                now.st_mtim.tv_nsec == then.st_mtim.tv_nsec;
    if (out->id && same)
        return true;
    bool ok = store_run(store, "BEGIN") && (!out->id || store_document_forget(store, out)) &&
              add_document(store, path, &now) && store_run(store, "COMMIT");
    store_document_release(out);
    return ok && find_document(store, path, out, &then);
}

/* Runs a statement whose first parameter is the document's number, and the second, if there is one, a text. */
static bool change(struct store *store, const struct store_document *document, const char *sql, const char *text)
{
    sqlite3_stmt *statement = store_prepare(store, sql);
    if (!statement)
        return false;
    sqlite3_bind_int64(statement, 1, document->id);
    if (text)
        sqlite3_bind_blob64(statement, 2, text, strlen(text), SQLITE_STATIC);
    return store_finish(store, statement);
}

bool store_document_name(struct store *store, const struct store_document *document, const char *name)
{
    return change(store, document, "UPDATE documents SET name = ?2 WHERE id = ?1", name);
}

bool store_document_complete(struct store *store, const struct store_document *document, const char *error)
{
    return change(store, document, "UPDATE documents SET complete = 1, error = CAST(?2 AS TEXT) WHERE id = ?1", error);
}

bool store_document_reopen(struct store *store, const struct store_document *document)
{
    return change(store, document, "UPDATE documents SET complete = 0 WHERE id = ?1", NULL);
}

bool store_document_forget(struct store *store, const struct store_document *document)
{
    return change(store, document, "DELETE FROM pages WHERE document = ?1", NULL) &&
           change(store, document, "UPDATE documents SET complete = 0, error = '', size = NULL WHERE id = ?1", NULL);
}

void store_document_release(struct store_document *document)
{
    free(document->name);
    *document = (struct store_document){0};
}
