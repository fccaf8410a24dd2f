#include "document/page_range.h"

#include <stdlib.h>
#include <string.h>

static const char *skip_spaces(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return p;
}

/* A number, and the spaces around it; beyond what a size_t holds it stays at the largest. *found tells whether there was
 * one. */
static const char *read_number(const char *p, const char *end, size_t *number, bool *found)
{
    p = skip_spaces(p, end);
    *found = p < end && *p >= '0' && *p <= '9';
    for (*number = 0; p < end && *p >= '0' && *p <= '9'; p++) {
        size_t digit = (size_t)(*p - '0');
        *number = *number > (SIZE_MAX - digit) / 10 ? SIZE_MAX : *number * 10 + digit;
    }
    return skip_spaces(p, end);
}

/* As much of an item as a message can hold. */
static int shown(const char *item, const char *end)
{
    const int most = 60;
    return end - item < most ? (int)(end - item) : most;
}

static enum fathom_status parse_item(struct page_span *out, const char *item, const char *end, size_t n_pages,
                                     struct fathom_err *err)
{
    bool from, to, open = false;
    int n = shown(item, end);
    const char *p = read_number(item, end, &out->first, &from);
    if (p < end && *p == '-') {
        open = true;
        p = read_number(p + 1, end, &out->last, &to);
    } else {
        out->last = out->first;
        to = from;
    }
    if (p < end || !(from || to))
        return fail(err, FATHOM_EINVAL, "'%.*s' is no choice of pages, expected a form like 1-3,7,10-", n, item);
    out->first = from ? out->first : 1;
    if (open && !to)
        out->last = n_pages > out->first ? n_pages : out->first;
    if (out->first == 0 || out->last == 0)
        return fail(err, FATHOM_EINVAL, "pages '%.*s': pages are counted from 1", n, item);
    if (out->first > out->last)
        return fail(err, FATHOM_EINVAL, "pages '%.*s' run backwards", n, item);
    if (n_pages && out->last > n_pages)
        return fail(err, FATHOM_EINVAL, "pages '%.*s' go past the end: the document has %zu page%s", n, item, n_pages,
                    n_pages == 1 ? "" : "s");
    return FATHOM_OK;
}

static int compare_spans(const void *a, const void *b)
{
    const struct page_span *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Sorts the spans and joins those that touch. */
static void join(struct page_range *r)
{
    size_t to = 0;
    qsort(r->spans, r->n, sizeof *r->spans, compare_spans);
    for (size_t i = 1; i < r->n; i++) {
        struct page_span *last = &r->spans[to], next = r->spans[i];
        if (next.first - 1 > last->last)
            r->spans[++to] = next;
        else if (next.last > last->last)
            last->last = next.last;
    }
    r->n = to + 1;
}

enum fathom_status page_range_parse(struct page_range *out, const char *text, size_t n_pages, struct fathom_err *err)
{
    size_t n = 1;
    *out = (struct page_range){0};
    if (!text)
        text = "1-";
    for (const char *c = text; *c; c++)
        n += *c == ',';
    if (!(out->spans = calloc(n, sizeof *out->spans)))
        return fail_nomem(err, n * sizeof *out->spans, "a choice of pages");
    for (const char *item = text, *end; out->n < n; item = end + 1) {
        end = item + strcspn(item, ",");
        enum fathom_status status = parse_item(&out->spans[out->n++], item, end, n_pages, err);
        if (status) {
            page_range_free(out);
            return status;
        }
    }
    join(out);
    return FATHOM_OK;
}

void page_range_free(struct page_range *r)
{
    free(r->spans);
    *r = (struct page_range){0};
}

size_t page_range_next(const struct page_range *r, size_t after)
{
    size_t low = 0, high = r->n; /* the first span that ends above `after` */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->spans[middle].last > after)
            high = middle;
        else
            low = middle + 1;
    }
    if (low == r->n)
        return 0;
    return r->spans[low].first > after ? r->spans[low].first : after + 1;
}

size_t page_range_count(const struct page_range *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        n += r->spans[i].last - r->spans[i].first + 1;
    return n;
}
