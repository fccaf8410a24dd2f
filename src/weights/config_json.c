#include "weights/config_json.h"

#include <stdio.h>
#include <string.h>

static const char *describe(const struct json_node *value, char text[64])
{
    switch (value->type) {
    case JSON_NULL: return "null";
    case JSON_FALSE: return "false";
    case JSON_TRUE: return "true";
    case JSON_ARRAY: return "a list";
    case JSON_OBJECT: return "an object";
    case JSON_STRING: snprintf(text, 64, "'%.50s'", value->text); return text;
    }
    snprintf(text, 64, "%.*s", value->n_text < 40 ? (int)value->n_text : 40, value->text);
    return text;
}

void config_bad(struct config_reader *r, const struct config_section *s, const char *key, const struct json_node *value,
                enum fathom_status status, const char *expected)
{
    char text[64];
    if (!r->status)
        r->status = fail(r->err, status, "%s%s is %s, expected %s", s->name, key, describe(value, text), expected);
}

struct config_section config_section(struct config_reader *r, const struct json_node *parent, const char *key,
                                     const char *name)
{
    struct config_section top = {parent, NULL, ""}, section = {NULL, NULL, name};
    const struct json_node *node = config_field(r, &top, key);
    if (node && node->type != JSON_OBJECT)
        config_bad(r, &top, key, node, FATHOM_EFORMAT, "an object");
    else
        section.object = node;
    return section;
}

const struct json_node *config_field(const struct config_reader *r, const struct config_section *s, const char *key)
{
    const struct json_node *node = json_get(r->json, s->object, key);
    if (!node || node->type == JSON_NULL)
        node = json_get(r->json, s->fallback, key);
    return node && node->type != JSON_NULL ? node : NULL;
}

static bool whole_number(struct config_reader *r, const struct config_section *s, const char *key,
                         const struct json_node *node, size_t min, size_t max, size_t *out)
{
    int64_t value;
    char expected[64];
    if (json_i64(node, &value) && value >= 0 && (size_t)value >= min && (size_t)value <= max) {
        *out = (size_t)value;
        return true;
    }
    snprintf(expected, sizeof expected, "a whole number from %zu to %zu", min, max);
    config_bad(r, s, key, node, FATHOM_EFORMAT, expected);
    return false;
}

bool config_size(struct config_reader *r, const struct config_section *s, const char *key, size_t min, size_t max,
                 size_t *out)
{
    const struct json_node *node = config_field(r, s, key);
    return node && whole_number(r, s, key, node, min, max, out);
}

/* Token ids; generation code writes several ends of text as a list, of which the first is the model's own. */
bool config_id(struct config_reader *r, const struct config_section *s, const char *key, int32_t *out)
{
    size_t value;
    const struct json_node *node = config_field(r, s, key);
    if (node && node->type == JSON_ARRAY && node->n > 0)
        node = json_first(r->json, node);
    if (!node || !whole_number(r, s, key, node, 0, INT32_MAX, &value))
        return false;
    *out = (int32_t)value;
    return true;
}

bool config_float(struct config_reader *r, const struct config_section *s, const char *key, double min, double max,
                  float *out)
{
    double value;
    char expected[64];
    const struct json_node *node = config_field(r, s, key);
    if (!node)
        return false;
    if (json_f64(node, &value) && value >= min && value <= max) {
        *out = (float)value;
        return true;
    }
    snprintf(expected, sizeof expected, "a number from %g to %g", min, max);
    config_bad(r, s, key, node, FATHOM_EFORMAT, expected);
    return false;
}

bool config_bool(struct config_reader *r, const struct config_section *s, const char *key, bool *out)
{
    const struct json_node *node = config_field(r, s, key);
    if (!node)
        return false;
    if (node->type != JSON_TRUE && node->type != JSON_FALSE) {
        config_bad(r, s, key, node, FATHOM_EFORMAT, "true or false");
        return false;
    }
    *out = node->type == JSON_TRUE;
    return true;
}

bool config_list_size(struct config_reader *r, const struct config_section *s, const char *key, size_t index,
                      size_t min, size_t max, size_t *out)
{
    const struct json_node *list = config_field(r, s, key);
    if (!list)
        return false;
    if (list->type != JSON_ARRAY) {
        config_bad(r, s, key, list, FATHOM_EFORMAT, "a list");
        return false;
    }
    const struct json_node *element = json_first(r->json, list);
    for (; element && index > 0; index--)
        element = json_next(r->json, list, element);
    return element && whole_number(r, s, key, element, min, max, out);
}

void config_only_string(struct config_reader *r, const struct config_section *s, const char *key, const char *value)
{
    char expected[64];
    const struct json_node *node = config_field(r, s, key);
    if (!node || json_is_string(node, value))
        return;
    snprintf(expected, sizeof expected, "'%s'", value);
    config_bad(r, s, key, node, FATHOM_EUNSUPPORTED, expected);
}

void config_only_bool(struct config_reader *r, const struct config_section *s, const char *key, bool value)
{
    const struct json_node *node = config_field(r, s, key);
    if (node && node->type != (value ? JSON_TRUE : JSON_FALSE))
        config_bad(r, s, key, node, FATHOM_EUNSUPPORTED, value ? "true" : "false");
}
