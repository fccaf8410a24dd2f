/* Pages in the job file: one row each, and one for every attempt at them. */
#include "store_sqlite.h"
#include "terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum field_type { COUNT, REAL };

#define STAT(type, name)                                                                                               \
    {                                                                                                                  \
#name, offsetof(struct fathom_page, stats.name), type                                                          \
    }
#define MATRIX(name, i)                                                                                                \
    {                                                                                                                  \
        name, offsetof(struct fathom_page, to_document) + (i) * sizeof(double), REAL                                   \
    }

/* The numbers of a page, each a column. */
static const struct field {
    const char *column;
    size_t offset;
    enum field_type type;
} fields[] = {
    {"n_pages", offsetof(struct fathom_page, n_pages), COUNT},
    {"width_pt", offsetof(struct fathom_page, width_pt), REAL},
    {"height_pt", offsetof(struct fathom_page, height_pt), REAL},
    MATRIX("to_document_a", 0),
    MATRIX("to_document_b", 1),
    MATRIX("to_document_c", 2),
    MATRIX("to_document_d", 3),
    MATRIX("to_document_e", 4),
    MATRIX("to_document_f", 5),
    STAT(REAL, decode_image_ms),
    STAT(REAL, vision_ms),
    STAT(REAL, prefill_ms),
    STAT(REAL, decode_ms),
    STAT(COUNT, n_views),
    STAT(COUNT, n_prompt_tokens),
    STAT(COUNT, n_output_tokens),
    STAT(REAL, vision_flop),
    STAT(REAL, prefill_flop),
    STAT(REAL, decode_bytes),
    STAT(COUNT, arena_peak_bytes),
    STAT(COUNT, vision_peak_bytes),
    STAT(COUNT, kv_bytes),
    STAT(COUNT, packed_bytes),
    STAT(COUNT, mapped_bytes),
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

#define TEXTS "document, number, status, err_status, error, width, height, raw, text_layer"
#define NUMBERS                                                                                                        \
    "n_pages, width_pt, height_pt, to_document_a, to_document_b, to_document_c, to_document_d, to_document_e,"         \
    " to_document_f, decode_image_ms, vision_ms, prefill_ms, decode_ms, n_views, n_prompt_tokens, n_output_tokens,"    \
    " vision_flop, prefill_flop, decode_bytes, arena_peak_bytes, vision_peak_bytes, kv_bytes, packed_bytes,"           \
    " mapped_bytes"
enum { N_TEXTS = 9 };

const char store_page_schema[] =
    "CREATE TABLE pages (" TEXTS ", " NUMBERS ", PRIMARY KEY (document, number)) WITHOUT ROWID;"
    "CREATE TABLE attempts (document, page, i, what, status, n_tokens, ms, chosen,"
    " PRIMARY KEY (document, page, i)) WITHOUT ROWID;"
    "CREATE TRIGGER forget_attempts DELETE ON pages BEGIN"
    " DELETE FROM attempts WHERE document = old.document AND page = old.number; END;";

static void bind_text(sqlite3_stmt *statement, int at, const char *text)
{
    sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC); /* NULL is NULL */
}

static void bind_fields(sqlite3_stmt *statement, const struct fathom_page *page)
{
    for (int i = 0; i < N_FIELDS; i++) {
        const char *at = (const char *)page + fields[i].offset;
        if (fields[i].type == COUNT)
            sqlite3_bind_int64(statement, N_TEXTS + 1 + i, (int64_t) * (const size_t *)(const void *)at);
        else
            sqlite3_bind_double(statement, N_TEXTS + 1 + i, *(const double *)(const void *)at);
    }
}

static bool put_attempts(struct store *store, const struct store_document *document, const struct fathom_page *page)
{
    for (size_t i = 0; i < page->n_attempts; i++) {
        const struct fathom_attempt *attempt = &page->attempts[i];
        sqlite3_stmt *statement = store_prepare(store, "INSERT INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
        if (!statement)
            return false;
        sqlite3_bind_int64(statement, 1, document->id);
        sqlite3_bind_int64(statement, 2, (int64_t)page->number);
        sqlite3_bind_int64(statement, 3, (int64_t)i);
        bind_text(statement, 4, attempt->what);
        bind_text(statement, 5, fathom_page_status_name(attempt->status));
        sqlite3_bind_int64(statement, 6, (int64_t)attempt->n_tokens);
        sqlite3_bind_double(statement, 7, attempt->ms);
        sqlite3_bind_int(statement, 8, attempt->chosen);
        if (!store_finish(store, statement))
            return false;
    }
    return true;
}

static bool put_page(struct store *store, const struct store_document *document, const struct fathom_page *page)
{
    static const char insert[] = "INSERT OR REPLACE INTO pages (" TEXTS ", " NUMBERS ") VALUES (?,?,?,?,?,?,?,?,?,"
                                 "?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
    sqlite3_stmt *statement = store_prepare(store, insert);
    if (!statement)
        return false;
    sqlite3_bind_int64(statement, 1, document->id);
    sqlite3_bind_int64(statement, 2, (int64_t)page->number);
    bind_text(statement, 3, fathom_page_status_name(page->status));
    sqlite3_bind_int(statement, 4, (int)page->err.status);
    bind_text(statement, 5, page->status == FATHOM_PAGE_FAILED ? page->err.message : "");
    sqlite3_bind_int(statement, 6, page->width);
    sqlite3_bind_int(statement, 7, page->height);
    bind_text(statement, 8, page->raw);
    bind_text(statement, 9, page->text_layer);
    bind_fields(statement, page);
    return store_finish(store, statement);
}

bool store_page_put(struct store *store, const struct store_document *document, const struct fathom_page *page)
{
    return store_run(store, "BEGIN") && put_page(store, document, page) && put_attempts(store, document, page) &&
           store_run(store, "COMMIT");
}

static enum fathom_page_status page_status(const char *name)
{
    for (int status = FATHOM_PAGE_OK; name && status < FATHOM_PAGE_FAILED; status++)
        if (strcmp(name, fathom_page_status_name((enum fathom_page_status)status)) == 0)
            return (enum fathom_page_status)status;
    return FATHOM_PAGE_FAILED;
}

static void get_fields(sqlite3_stmt *row, struct fathom_page *page)
{
    for (int i = 0; i < N_FIELDS; i++) {
        char *at = (char *)page + fields[i].offset;
        if (fields[i].type == COUNT)
            *(size_t *)(void *)at = (size_t)sqlite3_column_int64(row, N_TEXTS + i);
        else
            *(double *)(void *)at = sqlite3_column_double(row, N_TEXTS + i);
    }
}

static const char *column_text(sqlite3_stmt *row, int at) { return (const char *)sqlite3_column_text(row, at); }

/* What an attempt is called belongs to the row: names has room for it. */
struct attempts {
    struct fathom_attempt list[16];
    char names[16][64];
    size_t n;
};

static bool get_attempts(struct store *store, int64_t document, size_t number, struct attempts *out)
{
    sqlite3_stmt *rows = store_prepare(store, "SELECT what, status, n_tokens, ms, chosen FROM attempts"
                                              " WHERE document = ? AND page = ? ORDER BY i LIMIT 16");
    if (!rows)
        return false;
    sqlite3_bind_int64(rows, 1, document);
    sqlite3_bind_int64(rows, 2, (int64_t)number);
    int step;
    out->n = 0;
    while ((step = sqlite3_step(rows)) == SQLITE_ROW && out->n < 16) {
        const char *what = column_text(rows, 0);
        snprintf(out->names[out->n], sizeof out->names[0], "%s", what ? what : "");
        out->list[out->n] = (struct fathom_attempt){.what = out->names[out->n],
                                                    .status = page_status(column_text(rows, 1)),
                                                    .n_tokens = (size_t)sqlite3_column_int64(rows, 2),
                                                    .ms = sqlite3_column_double(rows, 3),
                                                    .chosen = sqlite3_column_int(rows, 4)};
        out->n++;
    }
    bool ok = step == SQLITE_DONE || store_fail(store);
    sqlite3_finalize(rows);
    return ok;
}

/* The row lives until the page is restored from it. */
static bool restore(struct store *store, sqlite3_stmt *row, const struct store_document *document,
                    struct fathom_page **out)
{
    struct attempts attempts;
    struct fathom_err err = {0};
    struct fathom_page kept = {0};
    const char *error = column_text(row, 4), *raw = column_text(row, 7);
    kept.number = (size_t)sqlite3_column_int64(row, 1);
    kept.status = page_status(column_text(row, 2));
    kept.err.status = (enum fathom_status)sqlite3_column_int(row, 3);
    snprintf(kept.err.message, sizeof kept.err.message, "%s", error ? error : "");
    kept.width = sqlite3_column_int(row, 5);
    kept.height = sqlite3_column_int(row, 6);
    kept.raw = raw ? raw : "";
    kept.text_layer = column_text(row, 8);
    get_fields(row, &kept);
    if (!get_attempts(store, document->id, kept.number, &attempts))
        return false;
    kept.attempts = attempts.list;
    kept.n_attempts = attempts.n;
    if (fathom_page_restore(&kept, out, &err) == FATHOM_OK)
        return true;
    print_error("'%s': page %zu: %s", store->path, kept.number, err.message);
    return false;
}

bool store_page_get(struct store *store, const struct store_document *document, size_t number, struct fathom_page **out)
{
    sqlite3_stmt *row =
        store_prepare(store, "SELECT " TEXTS ", " NUMBERS " FROM pages WHERE document = ? AND number = ?");
    *out = NULL;
    if (!row)
        return false;
    sqlite3_bind_int64(row, 1, document->id);
    sqlite3_bind_int64(row, 2, (int64_t)number);
    int step = sqlite3_step(row);
    bool ok = step == SQLITE_ROW ? restore(store, row, document, out) : store_fail(store);
    sqlite3_finalize(row);
    return ok;
}

bool store_numbers(struct store *store, const struct store_document *document, size_t **numbers, size_t *n)
{
    sqlite3_stmt *rows = store_prepare(store, "SELECT number FROM pages WHERE document = ? ORDER BY number");
    size_t capacity = 0;
    int step = SQLITE_ERROR;
    *numbers = NULL;
    *n = 0;
    if (!rows)
        return false;
    sqlite3_bind_int64(rows, 1, document->id);
    while ((step = sqlite3_step(rows)) == SQLITE_ROW) {
        if (*n == capacity) {
            size_t *larger = reallocarray(*numbers, capacity = 2 * capacity + 64, sizeof **numbers);
            if (!larger) {
                print_error("out of memory");
                break;
            }
            *numbers = larger;
        }
        (*numbers)[(*n)++] = (size_t)sqlite3_column_int64(rows, 0);
    }
    bool ok = step == SQLITE_DONE || (step != SQLITE_ROW && store_fail(store));
    sqlite3_finalize(rows);
    if (!ok) {
        free(*numbers);
        *numbers = NULL;
    }
    return ok;
}

bool store_count(struct store *store, const struct store_document *document, size_t by_status[FATHOM_PAGE_FAILED + 1])
{
    sqlite3_stmt *rows = store_prepare(store, "SELECT status, count(*) FROM pages WHERE document = ? GROUP BY status");
    int step;
    if (!rows)
        return false;
    sqlite3_bind_int64(rows, 1, document->id);
    while ((step = sqlite3_step(rows)) == SQLITE_ROW)
        by_status[page_status(column_text(rows, 0))] += (size_t)sqlite3_column_int64(rows, 1);
    sqlite3_finalize(rows);
    return step == SQLITE_DONE || store_fail(store);
}
