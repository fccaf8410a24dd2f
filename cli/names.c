#include "names.h"

#include "inputs.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAME_BYTES 200 /* of the 255 that file systems take: endings and numbers come behind it */

static int compare(const void *a, const void *b) { return strcmp(a, b); }

bool names_take(struct names *names, const char *name)
{
    if (tfind(name, &names->tree, compare))
        return true;
    char *copy = strdup(name);
    if (copy && tsearch(copy, &names->tree, compare))
        return true;
    free(copy);
    return false;
}

/* The length of s up to `most` bytes, no character cut in two. */
static int cut(const char *s, size_t n, size_t most)
{
    if (n > most)
        for (n = most; n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80;)
            n--;
    return (int)n;
}

char *names_make(struct names *names, const char *input)
{
    if (strcmp(input, "-") == 0)
        input = "stdin";
    const char *slash = strrchr(input, '/'), *base = slash ? slash + 1 : input;
    int folder = (int)(base - input), n = cut(base, strlen(base) - inputs_extension(base), MAX_NAME_BYTES);
    char *name;
    if (asprintf(&name, "%.*s%.*s", folder, input, n, base) < 0)
        return NULL;
    for (size_t number = 2; tfind(name, &names->tree, compare); number++) {
        free(name);
        if (asprintf(&name, "%.*s%.*s-%zu", folder, input, n, base, number) < 0)
            return NULL;
    }
    if (names_take(names, name))
        return name;
    free(name);
    return NULL;
}

void names_free(struct names *names)
{
    tdestroy(names->tree, free);
    names->tree = NULL;
}
