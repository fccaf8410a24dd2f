/* Any bytes are refused or become a tree that holds together. */
#include "base/json.h"
#include "fuzz.h"

static void check(const struct json *j, const struct json_node *node)
{
    uint32_t n = 0;
    int64_t i;
    double d;
    json_i64(node, &i);
    json_f64(node, &d);
    if (node->end > j->n_nodes || node->end <= (size_t)(node - j->nodes) ||
        (node->text && node->text[node->n_text] != 0))
        __builtin_trap();
    for (const struct json_node *child = json_first(j, node); child; child = json_next(j, node, child)) {
        if (node->type == JSON_OBJECT && n % 2 == 0 && child->type != JSON_STRING)
            __builtin_trap();
        check(j, child);
        n++;
    }
    if (n != (node->type == JSON_OBJECT ? 2 * node->n : node->n))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json j;
    struct fathom_err err;
    if (json_parse(&j, (const char *)data, size, &err) == FATHOM_OK) {
        check(&j, json_root(&j));
        if (json_root(&j)->end != j.n_nodes)
            __builtin_trap();
        json_get(&j, json_root(&j), "a");
    }
    json_free(&j);
    return 0;
}
