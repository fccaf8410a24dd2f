/* A build without SQLite: no job can be opened, so that nothing else is ever asked of one. */
#include "store.h"

#include "terminal.h"

bool store_open(const char *path, const struct store_setting *settings, size_t n, struct store **out)
{
    (void)settings, (void)n;
    *out = NULL;
    print_error("'%s': this build of fathom has no job files (SQLite)", path);
    return false;
}

void store_close(struct store *store) { (void)store; }

bool store_forget_failed(struct store *store) { return !store; }

bool store_names(struct store *store, bool (*take)(void *user, const char *name), void *user)
{
    (void)take, (void)user;
    return !store;
}

bool store_document_begin(struct store *store, const char *path, struct store_document *out)
{
    (void)path, (void)out;
    return !store;
}

bool store_document_name(struct store *store, const struct store_document *document, const char *name)
{
    (void)document, (void)name;
    return !store;
}

bool store_document_complete(struct store *store, const struct store_document *document, const char *error)
{
    (void)document, (void)error;
    return !store;
}

bool store_document_reopen(struct store *store, const struct store_document *document)
{
    (void)document;
    return !store;
}

bool store_document_forget(struct store *store, const struct store_document *document)
{
    (void)document;
    return !store;
}

void store_document_release(struct store_document *document) { *document = (struct store_document){0}; }

bool store_count(struct store *store, const struct store_document *document, size_t by_status[FATHOM_PAGE_FAILED + 1])
{
    (void)document, (void)by_status;
    return !store;
}

bool store_numbers(struct store *store, const struct store_document *document, size_t **numbers, size_t *n)
{
    (void)document;
    *numbers = NULL;
    *n = 0;
    return !store;
}

bool store_page_put(struct store *store, const struct store_document *document, const struct fathom_page *page)
{
    (void)document, (void)page;
    return !store;
}

bool store_page_get(struct store *store, const struct store_document *document, size_t number, struct fathom_page **out)
{
    (void)document, (void)number;
    *out = NULL;
    return !store;
}
