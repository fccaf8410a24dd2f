/* The keys that one query of attention_sparse sees, as a list. Shared by all levels. */
#ifndef FATHOM_KERNEL_REF_SPARSE_LIST_H
#define FATHOM_KERNEL_REF_SPARSE_LIST_H

#include "kernel/kernel.h"

struct sparse_list {
    const struct sparse_keys *keys;
    size_t first, n_window; /* the query's first row of the window, and their number */
    const int32_t *chosen;  /* its entries; NULL: 0, 1, 2, ...                       */
    size_t n;               /* window rows and entries                               */
};

/* Row `row` of n queries of which the first is at pos. */
static inline struct sparse_list sparse_list_of(const struct sparse_keys *keys, size_t row, size_t n, size_t pos)
{
    struct sparse_list list = {.keys = keys};
    size_t p = pos + row, own = keys->window.shape[0] - n + row; /* its own row of the window */
    list.n_window = p + 1 < keys->n_window ? p + 1 : keys->n_window;
    list.first = own + 1 - list.n_window;
    list.n = list.n_window;
    if (keys->entries.data) {
        size_t n_entries = (p + 1) / keys->ratio;
        if (row >= keys->n_all) {
            list.chosen = keys->chosen + (row - keys->n_all) * keys->top_k;
            n_entries = n_entries < keys->top_k ? n_entries : keys->top_k;
        }
        list.n += n_entries;
    }
    return list;
}

/* Key i of the list, [d]. */
static inline const float *sparse_list_key(const struct sparse_list *list, size_t i)
{
    if (i < list->n_window)
        return tensor_row(&list->keys->window, list->first + i);
    i -= list->n_window;
    return tensor_row(&list->keys->entries, list->chosen ? (size_t)list->chosen[i] : i);
}

#endif
