/* The pages that --pages names. */
#ifndef FATHOM_CLI_PAGE_SET_H
#define FATHOM_CLI_PAGE_SET_H

#include <stdbool.h>
#include <stddef.h>

/* Whether s is a list such as "-3,7,10-": numbers from 1, and ranges that rise or are open at an end. */
bool page_set_is_valid(const char *s);

/* Whether a valid list has the page; NULL has every page. */
bool page_set_has(const char *s, size_t page);

#endif
