#include "page_set.h"

#include <stdint.h>

/* One number from 1; false if there is none or it is out of any document's reach. */
static bool number(const char **s, size_t *value)
{
    const char *start = *s;
    *value = 0;
    while (**s >= '0' && **s <= '9' && *value < 100000000)
        *value = 10 * *value + (size_t)(*(*s)++ - '0');
    return *s != start && *value >= 1 && !(**s >= '0' && **s <= '9');
}

/* One range, with the comma behind it. */
static bool range(const char **s, size_t *first, size_t *last)
{
    bool from_start = **s == '-' && (*s)[1] >= '0' && (*s)[1] <= '9';
    *first = 1;
    if (!from_start && !number(s, first))
        return false;
    *last = *first;
    if (**s == '-') {
        ++*s;
        *last = SIZE_MAX;
        if (**s && **s != ',' && !number(s, last))
            return false;
    }
    if (**s == ',')
        return *++*s != '\0' && *last >= *first;
    return **s == '\0' && *last >= *first;
}

bool page_set_is_valid(const char *s)
{
    size_t first, last;
    do {
        if (!range(&s, &first, &last))
            return false;
    } while (*s);
    return true;
}

bool page_set_has(const char *s, size_t page)
{
    size_t first, last;
    if (!s)
        return true;
    while (*s && range(&s, &first, &last))
        if (page >= first && page <= last)
            return true;
    return false;
}
