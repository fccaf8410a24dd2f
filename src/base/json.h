/* A small strict JSON reader (RFC 8259): valid UTF-8 only, no duplicate keys, no trailing text, bounded depth.
 * Strings are unescaped; a lone surrogate escape is an error. Numbers keep their text. */
#ifndef FATHOM_BASE_JSON_H
#define FATHOM_BASE_JSON_H

#include "base/err.h"

enum json_type { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* Nodes of one document lie in one array in document order; a container's children follow it, and `end` is the index
 * after its last descendant, so walking needs no pointers. In an object each value is preceded by its key (a string). */
struct json_node {
    uint8_t type;
    uint32_t end;     /* index of the node after this one and all its descendants */
    uint32_t n;       /* array: elements; object: members                         */
    const char *text; /* string: unescaped, NUL-terminated (may hold NULs); number: its characters */
    size_t n_text;
};

struct json {
    struct json_node *nodes;
    size_t n_nodes;
    char *strings;
};

/* The limits make hostile input cheap to refuse: max depth 128, at most 2^31 nodes. text need not end in NUL. */
enum fathom_status json_parse(struct json *j, const char *text, size_t n, struct fathom_err *err);
void json_free(struct json *j); /* a zeroed j is fine */

const struct json_node *json_root(const struct json *j);

/* The value of a member, or NULL when obj is NULL, not an object, or has no such key. Objects are scanned linearly. */
const struct json_node *json_get(const struct json *j, const struct json_node *obj, const char *key);

/* Iteration: first child (or NULL) and the sibling after a child (or NULL at the end of parent). For an object the
 * children alternate key, value. */
const struct json_node *json_first(const struct json *j, const struct json_node *parent);
const struct json_node *json_next(const struct json *j, const struct json_node *parent, const struct json_node *child);

/* True and *out set when node is a number in the type's range: for json_i64 one written as an integer ("1.0" and "1e3"
 * are not), for json_f64 one that rounds to a finite double, whatever the locale. NULL nodes give false. */
bool json_i64(const struct json_node *node, int64_t *out);
bool json_f64(const struct json_node *node, double *out);
bool json_is_string(const struct json_node *node, const char *text);

#endif
