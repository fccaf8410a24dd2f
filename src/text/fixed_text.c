#include "text/fixed_text.h"

#include "base/mapfile.h"

#include <stdlib.h>
#include <string.h>

#define MAX_FILE_BYTES ((size_t)1 << 20) /* a hash for every byte of it */

const struct fixed_text fixed_text_max_effort = {
    "the text of maximum effort",
    476,
    {0xf7, 0xa2, 0x4f, 0x3b, 0x30, 0x50, 0xd4, 0xa8, 0x37, 0x81, 0xe9, 0xb7, 0x55, 0xb3, 0x16, 0xaa,
     0xe2, 0xec, 0x1d, 0x9d, 0xc8, 0x75, 0x62, 0x54, 0x1d, 0x90, 0xbc, 0xb0, 0x4d, 0x73, 0x50, 0xf7},
};

/* Where in data the text is, or NULL. */
static const char *find(const struct fixed_text *text, const char *data, size_t n)
{
    uint8_t hash[SHA256_BYTES];
    for (size_t at = 0; at + text->n <= n; at++) {
        sha256(hash, data + at, text->n);
        if (!memcmp(hash, text->sha256, sizeof hash))
            return data + at;
    }
    return NULL;
}

/* Takes the spelling of string literals away, in place: escapes become what they mean, a literal's end and the next one's
 * start, with only white space between, nothing. Returns the new length. */
static size_t unquote(char *data, size_t n)
{
    size_t to = 0;
    for (size_t i = 0; i < n; i++) {
        if (data[i] == '\\' && i + 1 < n) {
            char c = data[++i];
            data[to++] = c == 'n' ? '\n' : c;
            continue;
        }
        if (data[i] == '"' || data[i] == '\'') {
            size_t next = i + 1;
            while (next < n && (data[next] == ' ' || data[next] == '\n' || data[next] == '\r' || data[next] == '\t'))
                next++;
            if (next > i + 1 && next < n && data[next] == data[i]) {
                i = next;
                continue;
            }
        }
        data[to++] = data[i];
    }
    return to;
}

enum fathom_status fixed_text_read(char **out, const struct fixed_text *text, const char *path, struct fathom_err *err)
{
    char *data;
    size_t n;
    *out = NULL;
    enum fathom_status status = file_read(path, MAX_FILE_BYTES, &data, &n, err);
    if (status)
        return status;
    const char *found = find(text, data, n);
    if (!found)
        found = find(text, data, unquote(data, n));
    if (!found)
        status = fail(err, FATHOM_EFORMAT, "'%s' does not hold %s (%zu bytes of a known SHA-256)", path, text->what,
                      text->n);
    else if (!(*out = strndup(found, text->n)))
        status = fail_nomem(err, text->n, text->what);
    free(data);
    return status;
}
