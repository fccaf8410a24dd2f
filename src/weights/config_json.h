/* Reading fields of a config file: the first bad one is recorded, later ones do nothing, the caller checks once. */
#ifndef FATHOM_WEIGHTS_CONFIG_JSON_H
#define FATHOM_WEIGHTS_CONFIG_JSON_H

#include "base/json.h"

struct config_reader {
    const struct json *json;
    struct fathom_err *err;
    enum fathom_status status;
};

/* One object of the file. A field that it lacks (or has as null) is looked for in fallback, when there is one. */
struct config_section {
    const struct json_node *object; /* NULL: as if it were empty */
    const struct json_node *fallback;
    const char *name; /* in front of the field in messages: "text_config." or "" */
};

/* A member that is an object, or an empty section when it is absent. */
struct config_section config_section(struct config_reader *r, const struct json_node *parent, const char *key,
                                     const char *name);

/* The node, NULL when absent or null. */
const struct json_node *config_field(const struct config_reader *r, const struct config_section *s, const char *key);

/* Each leaves *out alone when the field is absent and returns whether it was there. Bounds are inclusive. */
bool config_size(struct config_reader *r, const struct config_section *s, const char *key, size_t min, size_t max,
                 size_t *out);
bool config_id(struct config_reader *r, const struct config_section *s, const char *key, int32_t *out);
bool config_float(struct config_reader *r, const struct config_section *s, const char *key, double min, double max,
                  float *out);
bool config_bool(struct config_reader *r, const struct config_section *s, const char *key, bool *out);

/* Element of a list of at most max_n; false when the field is absent or shorter. */
bool config_list_size(struct config_reader *r, const struct config_section *s, const char *key, size_t index,
                      size_t min, size_t max, size_t *out);

/* For options with one value that is known: absent is fine, anything else is FATHOM_EUNSUPPORTED. */
void config_only_string(struct config_reader *r, const struct config_section *s, const char *key, const char *value);
void config_only_bool(struct config_reader *r, const struct config_section *s, const char *key, bool value);

/* "s.key is <the value>, expected <expected>". */
void config_bad(struct config_reader *r, const struct config_section *s, const char *key, const struct json_node *value,
                enum fathom_status status, const char *expected);

#endif
