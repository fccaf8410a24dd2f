#include "documents.h"

#include "interrupt.h"
#include "names.h"
#include "page_set.h"
#include "text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The document at hand. */
struct document {
    struct session *session;
    struct store *store; /* NULL: no job */
    const struct outputs_plan *plan;
    const char *path;
    struct store_document stored;
    size_t *kept, n_kept; /* numbers of the pages in the job file, rising */
    size_t next_kept;     /* the first of them that is not written yet    */
    struct outputs outputs;
    size_t n_characters; /* generated for the page at hand */
    size_t n_pages_told; /* handed over by the library     */
};

static bool on_stage(void *user, const char *stage, size_t done, size_t total)
{
    struct document *d = user;
    if (strcmp(stage, "vision") == 0 && done == 0)
        d->n_characters = 0;
    report_stage(&d->session->report, stage, done, total);
    return !session_interrupted(d->session);
}

static bool on_text(void *user, const char *raw, size_t n)
{
    struct document *d = user;
    for (size_t i = 0; i < n; i++)
        d->n_characters += ((unsigned char)raw[i] & 0xc0) != 0x80;
    return on_stage(d, "decode", d->n_characters, 0);
}

static bool broken(struct document *d)
{
    d->session->broken = true;
    return false;
}

/* Writes a page of the job file again; pixels: the page as it was drawn, or NULL. */
static bool write_kept(struct document *d, size_t number, const struct fathom_page *pixels)
{
    struct fathom_page *page;
    if (!store_page_get(d->store, &d->stored, number, &page))
        return broken(d);
    struct fathom_page whole = *page;
    if (pixels) {
        whole.rgb = pixels->rgb;
        whole.jpeg = pixels->jpeg;
        whole.jpeg_bytes = pixels->jpeg_bytes;
    }
    bool ok = outputs_page(&d->outputs, &whole) || broken(d);
    fathom_page_free(page);
    return ok;
}

/* Writes the kept pages below a number. */
static bool write_kept_below(struct document *d, size_t number)
{
    while (d->next_kept < d->n_kept && d->kept[d->next_kept] < number)
        if (!write_kept(d, d->kept[d->next_kept++], NULL))
            return false;
    return true;
}

static enum fathom_choice on_pixels(void *user, const struct fathom_page *page)
{
    struct document *d = user;
    report_page_begins(&d->session->report, page);
    if (d->next_kept >= d->n_kept || d->kept[d->next_kept] != page->number)
        return FATHOM_READ;
    d->next_kept++;
    return write_kept(d, page->number, page) && !interrupt_signal() ? FATHOM_SKIP : FATHOM_STOP;
}

static bool on_page(void *user, const struct fathom_page *page)
{
    struct document *d = user;
    struct session *s = d->session;
    d->n_pages_told++;
    if (!write_kept_below(d, page->number))
        return false;
    bool is_kept = d->next_kept < d->n_kept && d->kept[d->next_kept] == page->number;
    if (is_kept) { /* it failed then, and does so again */
        d->next_kept++;
        return write_kept(d, page->number, NULL) && !session_interrupted(s);
    }
    if (page->status == FATHOM_PAGE_FAILED && interrupt_signal())
        s->cut = true; /* perhaps the interrupt's doing */
    report_page(&s->report, page, s->cut);
    session_stats(s, d->path, page);
    if (s->cut && d->store)
        return false; /* to be read again by who goes on with the job */
    if (d->store && !store_page_put(d->store, &d->stored, page))
        return broken(d);
    return (outputs_page(&d->outputs, page) || broken(d)) && !interrupt_signal();
}

/* The pages that are still to be read, as a list for the library; "" when there are none. */
static bool list_missing(const struct document *d, const char *wanted, struct text *out)
{
    size_t kept = 0;
    text_add_string(out, "");
    for (size_t first = 1; first <= d->stored.n_pages; first++) {
        while (kept < d->n_kept && d->kept[kept] < first)
            kept++;
        if ((kept < d->n_kept && d->kept[kept] == first) || !page_set_has(wanted, first))
            continue;
        size_t last = first, next = kept < d->n_kept ? d->kept[kept] : SIZE_MAX;
        while (last < d->stored.n_pages && last + 1 < next && page_set_has(wanted, last + 1))
            last++;
        text_add_format(out, "%s%zu-%zu", out->n ? "," : "", first, last);
        first = last;
    }
    if (out->failed)
        print_error("out of memory");
    return !out->failed;
}

/* Reads what the job file does not have, and writes everything. */
static bool read_pages(struct document *d, enum fathom_status *status, struct fathom_err *err)
{
    static const struct fathom_callbacks callbacks = {
        .on_stage = on_stage, .on_text = on_text, .on_page = on_page, .on_pixels = on_pixels};
    struct fathom_callbacks mine = callbacks;
    struct fathom_read_options options = d->session->options->read;
    struct text missing = {0};
    bool know_pages = d->n_kept && d->stored.n_pages, all_drawn = outputs_need_pixels(d->plan);
    mine.user = d;
    *status = FATHOM_OK;
    if (know_pages && !all_drawn) {
        if (!list_missing(d, options.pages, &missing)) {
            text_free(&missing);
            return broken(d);
        }
        options.pages = missing.bytes;
    }
    if (!options.pages || *options.pages)
        *status = session_read_file(d->session, d->path, &options, &mine, err);
    text_free(&missing);
    return !d->session->broken && (*status == FATHOM_ECANCELLED || write_kept_below(d, SIZE_MAX));
}

/* The document's files go where they belong, or away. */
static void finish(struct document *d, enum fathom_status status, const struct fathom_err *err, bool changed)
{
    struct session *s = d->session;
    bool stopped = status == FATHOM_ECANCELLED, any = d->n_pages_told || d->n_kept;
    const char *reason = status && !stopped ? err->message : "";
    struct fathom_err why = {FATHOM_EIO, "it changed while it was read; pages may be of both versions"};
    if (changed) {
        reason = why.message;
        err = &why;
    }
    if (*reason)
        report_file_failed(&s->report, err);
    if (stopped && d->store) {
        outputs_discard(&d->outputs);
        return;
    }
    if (!any && d->plan->stream && !stopped) {
        struct fathom_page none = {.status = FATHOM_PAGE_FAILED, .err = *err, .raw = "", .markdown = ""};
        any = outputs_page(&d->outputs, &none);
    }
    if (!any)
        outputs_discard(&d->outputs);
    else if (!outputs_commit(&d->outputs))
        broken(d);
    s->keep = s->keep || any;
    if (d->store && !s->broken && !stopped && !changed)
        s->broken = !store_document_complete(d->store, &d->stored, reason);
    if (!stopped)
        report_file_done(&s->report);
}

/* Whether an earlier run did it all. */
static bool is_done(struct document *d, const char *name)
{
    struct report *report = &d->session->report;
    size_t by_status[FATHOM_PAGE_FAILED + 1] = {0};
    if (!d->store)
        return false;
    if (!store_numbers(d->store, &d->stored, &d->kept, &d->n_kept) || !store_count(d->store, &d->stored, by_status)) {
        d->session->broken = true;
        return true;
    }
    if (d->n_kept)
        report_kept(report, d->stored.n_pages, by_status);
    if (!d->stored.complete)
        return false;
    if (!d->n_kept || !outputs_exist(d->plan, name)) {
        d->session->broken = !store_document_reopen(d->store, &d->stored);
        return d->session->broken;
    }
    if (d->stored.error[0]) {
        struct fathom_err err = {.status = FATHOM_EIO};
        snprintf(err.message, sizeof err.message, "%s", d->stored.error);
        report_file_failed(report, &err);
    }
    report_file_done(report);
    return true;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void read_document(struct document *d, const char *name)
{
    struct fathom_err err = {0};
    enum fathom_status status = FATHOM_OK;
    struct stat before = {0}, after = {0};
    bool is_file = stat(d->path, &before) == 0 && S_ISREG(before.st_mode);
    if (is_done(d, name))
        return;
    if (!outputs_open(&d->outputs, d->plan, name, d->path) || !read_pages(d, &status, &err)) {
        outputs_discard(&d->outputs);
        d->session->broken = d->session->broken || !interrupt_signal();
        return;
    }
    bool changed = is_file && (stat(d->path, &after) != 0 || !same_file(&before, &after));
    if (changed && d->store && !store_document_forget(d->store, &d->stored))
        d->session->broken = true;
    finish(d, status, &err, changed);
}

static bool take_name(void *names, const char *name) { return names_take(names, name); }

/* The name of an input's outputs: the job file's, or a new one. NULL when there is none to be had. */
static char *document_name(struct document *d, struct names *names, const struct input *input)
{
    if (d->stored.name && *d->stored.name)
        return strdup(d->stored.name);
    char *name = names_make(names, input->name);
    if (!name)
        print_error("out of memory");
    if (name && d->stored.id && !store_document_name(d->store, &d->stored, name)) {
        free(name);
        return NULL;
    }
    return name;
}

/* Every process that shares the work gives the same names, so each names the files of the others, too. */
static void take_input(struct document *d, struct names *names, const struct input *input, bool is_mine)
{
    d->path = input->path;
    if (is_mine && d->store && !store_document_begin(d->store, d->path, &d->stored)) {
        broken(d);
        return;
    }
    char *name = document_name(d, names, input);
    if (!name) {
        broken(d);
    } else if (is_mine) {
        d->session->cut = false;
        report_file(&d->session->report, d->path);
        read_document(d, name);
    }
    free(name);
    free(d->kept);
    store_document_release(&d->stored);
}

size_t documents_read(struct session *s, struct store *store, const struct outputs_plan *plan)
{
    const struct ocr_options *o = s->options;
    struct names names = {0};
    size_t i = 0, n_unread = 0;
    s->broken = store && !store_names(store, take_name, &names);
    for (; i < s->inputs->n && !s->broken && !interrupt_signal() && !s->out.error; i++) {
        struct document d = {.session = s, .store = store, .plan = plan};
        take_input(&d, &names, &s->inputs->files[i], i % o->n_shards == o->shard);
    }
    for (; i < s->inputs->n; i++)
        n_unread += i % o->n_shards == o->shard;
    names_free(&names);
    return n_unread;
}
