/* The text that DeepSeek-V4's prompt has at maximum effort. It is not part of this program: it is looked for in a file that
 * the user names, such as the encoder published beside the weights, and known by its SHA-256. */
#ifndef FATHOM_TEXT_FIXED_TEXT_H
#define FATHOM_TEXT_FIXED_TEXT_H

#include "base/err.h"
#include "base/sha256.h"

struct fixed_text {
    const char *what; /* for messages: "the text of maximum effort" */
    size_t n;         /* bytes                                      */
    uint8_t sha256[SHA256_BYTES];
};

extern const struct fixed_text fixed_text_max_effort;

/* *out: the text, NUL-terminated, the caller's (free). It is found anywhere in the file, as it is or as string literals of a
 * program spell it (\n, \", \', \\, and literals one behind the other). FATHOM_EFORMAT when it is not there. */
enum fathom_status fixed_text_read(char **out, const struct fixed_text *text, const char *path, struct fathom_err *err);

#endif
