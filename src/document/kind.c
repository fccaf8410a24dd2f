#include "document/kind.h"

#include <string.h>
#include <strings.h>

const char *kind_name(enum kind kind)
{
    static const char *const names[N_KINDS] = {"text", "title", "figure", "table", "formula", "caption", "other"};
    return names[kind];
}

enum kind block_kind(const struct fathom_block *block)
{
    /* In this order: an image_caption is a caption. */
    static const struct {
        const char *part;
        enum kind kind;
    } parts[] = {
        {"caption", KIND_CAPTION},  {"footnote", KIND_OTHER},  {"header", KIND_OTHER}, {"footer", KIND_OTHER},
        {"page_num", KIND_OTHER},   {"number", KIND_OTHER},    {"title", KIND_TITLE},  {"heading", KIND_TITLE},
        {"equation", KIND_FORMULA}, {"formula", KIND_FORMULA}, {"table", KIND_TABLE},  {"image", KIND_FIGURE},
        {"figure", KIND_FIGURE},    {"chart", KIND_FIGURE},
    };
    if (strncasecmp(block->text, "<table", strlen("<table")) == 0)
        return KIND_TABLE;
    if (label_is_image(block->label, strlen(block->label)))
        return KIND_FIGURE;
    if (strlen(block->label) > 32) /* text that was asked for, not the name of a kind */
        return KIND_TEXT;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(block->label, parts[i].part))
            return parts[i].kind;
    return KIND_TEXT;
}

bool label_is_image(const char *label, size_t n)
{
    static const char name[] = "image", open[] = "<|ref|>image", close[] = "image<|/ref|>",
                      both[] = "<|ref|>image<|/ref|>";
    size_t n_name = strlen(name), n_open = strlen(open), n_close = strlen(close);
    return (n == n_name && memcmp(label, name, n) == 0) ||
           (n >= n_open && memcmp(label + n - n_open, open, n_open) == 0) ||
           (n >= n_close && memcmp(label, close, n_close) == 0) || memmem(label, n, both, strlen(both)) != NULL;
}
