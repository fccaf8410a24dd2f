#include "text/added.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *left, const void *right)
{
    const struct added *a = left, *b = right;
    int order = memcmp(a->text, b->text, a->n < b->n ? a->n : b->n);
    return order ? order : (a->n > b->n) - (a->n < b->n);
}

void added_sort(struct added_set *set)
{
    if (set->n)
        qsort(set->items, set->n, sizeof *set->items, compare);
    size_t at = 0;
    for (size_t byte = 0; byte <= 256; byte++) {
        while (at < set->n && (unsigned char)set->items[at].text[0] < byte)
            at++;
        set->first[byte] = at;
    }
}

/* The first of items [low, high), which agree in their first depth bytes, whose byte at depth is at least wanted. A text
 * that ends at depth is the first of them and counts as lower than any byte. */
static size_t lower_bound(const struct added *items, size_t low, size_t high, size_t depth, unsigned wanted)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (items[middle].n == depth || (unsigned char)items[middle].text[depth] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct added *added_match(const struct added_set *set, const char *text, size_t n)
{
    if (n == 0)
        return NULL;
    const struct added *items = set->items, *longest = NULL;
    unsigned byte = (unsigned char)text[0];
    size_t low = set->first[byte], high = set->first[byte + 1];
    for (size_t depth = 1; low < high; depth++) {
        if (items[low].n == depth)
            longest = &items[low];
        if (depth == n)
            break;
        byte = (unsigned char)text[depth];
        low = lower_bound(items, low, high, depth, byte);
        high = lower_bound(items, low, high, depth, byte + 1);
    }
    return longest;
}

const struct added *added_find(const struct added_set *set, const char *text, size_t n)
{
    struct added wanted = {text, n, 0};
    return set->n ? bsearch(&wanted, set->items, set->n, sizeof *set->items, compare) : NULL;
}
