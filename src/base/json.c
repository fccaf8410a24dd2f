#include "base/json.h"

#include "base/checked.h"
#include "base/hash.h"
#include "base/utf8.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 128
#define MAX_NODES ((size_t)1 << 31)

struct slot {
    uint32_t hash, node; /* node 0, the root, is never a key: an empty slot */
};

struct parser {
    const char *begin, *p, *end;
    struct json *j;
    size_t capacity;          /* of j->nodes                                                          */
    char *out;                /* next free byte of j->strings                                         */
    uint32_t open[MAX_DEPTH]; /* containers not yet closed                                            */
    int depth;
    struct slot *slots; /* scratch for finding duplicate keys                                   */
    size_t n_slots;
    struct hash_key key;
    struct fathom_err *err;
};

static enum fathom_status refuse(struct parser *ps, enum fathom_status status, const char *what)
{
    size_t line = 1;
    const char *line_start = ps->begin;
    for (const char *c = ps->begin; c < ps->p; c++)
        if (*c == '\n') {
            line++;
            line_start = c + 1;
        }
    return fail(ps->err, status, "%s in JSON, line %zu, byte %zu", what, line, (size_t)(ps->p - line_start) + 1);
}

static enum fathom_status bad(struct parser *ps, const char *what) { return refuse(ps, FATHOM_EFORMAT, what); }

static enum fathom_status add_node(struct parser *ps, enum json_type type, const char *text, size_t n_text)
{
    struct json *j = ps->j;
    if (j->n_nodes == ps->capacity) {
        if (j->n_nodes >= MAX_NODES)
            return refuse(ps, FATHOM_ELIMIT, "too many values");
        size_t capacity = ps->capacity ? 2 * ps->capacity : 64, bytes;
        if (!size_mul(capacity, sizeof *j->nodes, &bytes))
            return fail_nomem(ps->err, SIZE_MAX, "JSON");
        struct json_node *nodes = realloc(j->nodes, bytes);
        if (!nodes)
            return fail_nomem(ps->err, bytes, "JSON");
        j->nodes = nodes;
        ps->capacity = capacity;
    }
    uint32_t index = (uint32_t)j->n_nodes++;
    j->nodes[index] = (struct json_node){(uint8_t)type, index + 1, 0, text, n_text};
    return FATHOM_OK;
}

static void skip_space(struct parser *ps)
{
    while (ps->p < ps->end && (*ps->p == ' ' || *ps->p == '\n' || *ps->p == '\r' || *ps->p == '\t'))
        ps->p++;
}

static bool hex4(const struct parser *ps, const char *p, uint32_t *value)
{
    if (ps->end - p < 4)
        return false;
    *value = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        uint32_t digit;
        if (c >= '0' && c <= '9')
            digit = (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (uint32_t)(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
            digit = (uint32_t)(c - 'A' + 10);
        else
            return false;
        *value = *value << 4 | digit;
    }
    return true;
}

/* p is behind the backslash. */
static enum fathom_status parse_escape(struct parser *ps)
{
    if (ps->p == ps->end)
        return bad(ps, "unfinished string");
    char c = *ps->p++;
    switch (c) {
    case '"':
    case '\\':
    case '/': *ps->out++ = c; return FATHOM_OK;
    case 'b': *ps->out++ = '\b'; return FATHOM_OK;
    case 'f': *ps->out++ = '\f'; return FATHOM_OK;
    case 'n': *ps->out++ = '\n'; return FATHOM_OK;
    case 'r': *ps->out++ = '\r'; return FATHOM_OK;
    case 't': *ps->out++ = '\t'; return FATHOM_OK;
    case 'u': break;
    default: ps->p--; return bad(ps, "unknown escape");
    }
    uint32_t code, low;
    if (!hex4(ps, ps->p, &code))
        return bad(ps, "\\u without four hexadecimal digits");
    ps->p += 4;
    if (code >= 0xd800 && code <= 0xdfff) {
        if (code > 0xdbff || ps->end - ps->p < 6 || ps->p[0] != '\\' || ps->p[1] != 'u' || !hex4(ps, ps->p + 2, &low) ||
            low < 0xdc00 || low > 0xdfff)
            return bad(ps, "half of a surrogate pair");
        ps->p += 6;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    ps->out += utf8_encode(code, ps->out);
    return FATHOM_OK;
}

/* True when one of the eight bytes is a control character, a quote, a backslash or not ASCII. */
static bool needs_care(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    uint64_t quote = word ^ ones * '"', backslash = word ^ ones * '\\';
    return ((word | (word - ones * 0x20) | (quote - ones) | (backslash - ones)) & high) != 0;
}

/* A string never needs more room unescaped, with its NUL, than it takes in the text with its quotes. */
static enum fathom_status parse_string(struct parser *ps)
{
    const char *start = ps->out;
    ps->p++;
    for (;;) {
        uint64_t word;
        while (ps->end - ps->p >= 8 && (memcpy(&word, ps->p, 8), !needs_care(word))) {
            memcpy(ps->out, &word, 8);
            ps->p += 8;
            ps->out += 8;
        }
        if (ps->p == ps->end)
            return bad(ps, "unfinished string");
        unsigned char c = (unsigned char)*ps->p;
        if (c == '"') {
            ps->p++;
            break;
        }
        if (c == '\\') {
            ps->p++;
            enum fathom_status status = parse_escape(ps);
            if (status)
                return status;
        } else if (c < 0x20) {
            return bad(ps, "control character inside a string");
        } else if (c < 0x80) {
            *ps->out++ = (char)c;
            ps->p++;
        } else {
            uint32_t code;
            size_t n = utf8_decode(ps->p, (size_t)(ps->end - ps->p), &code);
            if (n == 0)
                return bad(ps, "invalid UTF-8");
            memcpy(ps->out, ps->p, n);
            ps->p += n;
            ps->out += n;
        }
    }
    *ps->out++ = 0;
    return add_node(ps, JSON_STRING, start, (size_t)(ps->out - start) - 1);
}

static bool skip_digits(struct parser *ps)
{
    const char *start = ps->p;
    while (ps->p < ps->end && *ps->p >= '0' && *ps->p <= '9')
        ps->p++;
    return ps->p > start;
}

static enum fathom_status parse_number(struct parser *ps)
{
    const char *start = ps->p;
    if (*ps->p == '-')
        ps->p++;
    if (ps->p < ps->end && *ps->p == '0')
        ps->p++;
    else if (!skip_digits(ps))
        return bad(ps, "number without digits");
    if (ps->p < ps->end && *ps->p == '.') {
        ps->p++;
        if (!skip_digits(ps))
            return bad(ps, "number without digits behind its point");
    }
    if (ps->p < ps->end && (*ps->p == 'e' || *ps->p == 'E')) {
        ps->p++;
        if (ps->p < ps->end && (*ps->p == '+' || *ps->p == '-'))
            ps->p++;
        if (!skip_digits(ps))
            return bad(ps, "number without digits in its exponent");
    }
    size_t n = (size_t)(ps->p - start);
    char *text = memcpy(ps->out, start, n);
    text[n] = 0;
    ps->out += n + 1;
    return add_node(ps, JSON_NUMBER, text, n);
}

static enum fathom_status parse_word(struct parser *ps, const char *word, enum json_type type)
{
    size_t n = strlen(word);
    if ((size_t)(ps->end - ps->p) < n || memcmp(ps->p, word, n) != 0)
        return bad(ps, "unknown word");
    ps->p += n;
    return add_node(ps, type, NULL, 0);
}

static enum fathom_status open_container(struct parser *ps, enum json_type type)
{
    if (ps->depth == MAX_DEPTH)
        return refuse(ps, FATHOM_ELIMIT, "more than 128 levels of nesting");
    ps->p++;
    ps->open[ps->depth++] = (uint32_t)ps->j->n_nodes;
    return add_node(ps, type, NULL, 0);
}

static enum fathom_status parse_value(struct parser *ps)
{
    switch (*ps->p) {
    case '{': return open_container(ps, JSON_OBJECT);
    case '[': return open_container(ps, JSON_ARRAY);
    case '"': return parse_string(ps);
    case 't': return parse_word(ps, "true", JSON_TRUE);
    case 'f': return parse_word(ps, "false", JSON_FALSE);
    case 'n': return parse_word(ps, "null", JSON_NULL);
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9': return parse_number(ps);
    default: return bad(ps, "unexpected character");
    }
}

static bool same_text(const struct json_node *a, const struct json_node *b)
{
    return a->n_text == b->n_text && memcmp(a->text, b->text, a->n_text) == 0;
}

static enum fathom_status duplicate(struct parser *ps, const struct json_node *key)
{
    return fail(ps->err, FATHOM_EFORMAT, "key \"%.200s\" twice in one object in JSON", key->text);
}

static enum fathom_status check_keys(struct parser *ps, uint32_t object)
{
    const struct json_node *nodes = ps->j->nodes;
    size_t n = nodes[object].n;
    uint32_t end = nodes[object].end;
    if (n <= 8) {
        for (uint32_t a = object + 1; a < end; a = nodes[a + 1].end)
            for (uint32_t b = object + 1; b < a; b = nodes[b + 1].end)
                if (same_text(&nodes[a], &nodes[b]))
                    return duplicate(ps, &nodes[a]);
        return FATHOM_OK;
    }
    size_t n_slots = 32;
    while (n_slots < 2 * n)
        n_slots *= 2;
    if (n_slots > ps->n_slots) {
        free(ps->slots);
        ps->n_slots = 0;
        ps->slots = malloc(n_slots * sizeof *ps->slots);
        if (!ps->slots)
            return fail_nomem(ps->err, n_slots * sizeof *ps->slots, "the keys of a JSON object");
        ps->n_slots = n_slots;
    }
    memset(ps->slots, 0, n_slots * sizeof *ps->slots);
    struct slot batch[32]; /* whose cache lines are fetched ahead */
    for (uint32_t a = object + 1; a < end;) {
        size_t n_batch = 0;
        for (; n_batch < 32 && a < end; a = nodes[a + 1].end) {
            uint32_t hash = (uint32_t)hash_bytes(ps->key, nodes[a].text, nodes[a].n_text);
            __builtin_prefetch(&ps->slots[hash & (n_slots - 1)]);
            batch[n_batch++] = (struct slot){hash, a};
        }
        for (size_t i = 0; i < n_batch; i++) {
            const struct json_node *key = &nodes[batch[i].node];
            size_t at = batch[i].hash & (n_slots - 1);
            for (; ps->slots[at].node; at = (at + 1) & (n_slots - 1))
                if (ps->slots[at].hash == batch[i].hash && same_text(key, &nodes[ps->slots[at].node]))
                    return duplicate(ps, key);
            ps->slots[at] = batch[i];
        }
    }
    return FATHOM_OK;
}

static enum fathom_status close_container(struct parser *ps)
{
    uint32_t container = ps->open[--ps->depth];
    ps->p++;
    ps->j->nodes[container].end = (uint32_t)ps->j->n_nodes;
    return ps->j->nodes[container].type == JSON_OBJECT ? check_keys(ps, container) : FATHOM_OK;
}

static enum fathom_status parse_key(struct parser *ps)
{
    if (*ps->p != '"')
        return bad(ps, "key without quotes");
    enum fathom_status status = parse_string(ps);
    if (status)
        return status;
    skip_space(ps);
    if (ps->p == ps->end || *ps->p != ':')
        return bad(ps, "key without a colon");
    ps->p++;
    return FATHOM_OK;
}

static enum fathom_status parse_document(struct parser *ps)
{
    enum { VALUE, VALUE_OR_END, KEY, KEY_OR_END, AFTER_VALUE } expected = VALUE;
    for (;;) {
        enum fathom_status status = FATHOM_OK;
        skip_space(ps);
        if (ps->p == ps->end)
            return ps->depth == 0 && expected == AFTER_VALUE ? FATHOM_OK : bad(ps, "unexpected end");
        struct json_node *parent = ps->depth ? &ps->j->nodes[ps->open[ps->depth - 1]] : NULL;
        bool in_object = parent && parent->type == JSON_OBJECT;
        bool ends = parent && *ps->p == (in_object ? '}' : ']');

        if (ends && expected != VALUE && expected != KEY) {
            status = close_container(ps);
            expected = AFTER_VALUE;
        } else if (expected == AFTER_VALUE) {
            if (!parent)
                return bad(ps, "text after the end");
            if (*ps->p != ',')
                return bad(ps, "missing comma");
            ps->p++;
            expected = in_object ? KEY : VALUE;
        } else if (expected == KEY || expected == KEY_OR_END) {
            parent->n++;
            status = parse_key(ps);
            expected = VALUE;
        } else {
            if (parent && !in_object)
                parent->n++;
            int depth = ps->depth;
            char c = *ps->p;
            status = parse_value(ps);
            expected = ps->depth == depth ? AFTER_VALUE : c == '{' ? KEY_OR_END : VALUE_OR_END;
        }
        if (status)
            return status;
    }
}

enum fathom_status json_parse(struct json *j, const char *text, size_t n, struct fathom_err *err)
{
    *j = (struct json){0};
    size_t bytes;
    if (!size_add(n, 8, &bytes)) /* a number at the very end has no room of its own for its NUL */
        return fail_nomem(err, SIZE_MAX, "JSON");
    j->strings = malloc(bytes);
    if (!j->strings)
        return fail_nomem(err, bytes, "JSON");
    if (n == 0)
        text = ""; /* an empty file's mapping is NULL */
    struct parser ps = {.begin = text, .p = text, .end = text + n, .j = j, .out = j->strings, .err = err};
    ps.key = hash_key_random();
    enum fathom_status status = parse_document(&ps);
    free(ps.slots);
    if (status)
        json_free(j);
    return status;
}

void json_free(struct json *j)
{
    free(j->nodes);
    free(j->strings);
    *j = (struct json){0};
}

const struct json_node *json_root(const struct json *j) { return j->nodes; }

const struct json_node *json_first(const struct json *j, const struct json_node *parent)
{
    (void)j;
    return parent && parent->n ? parent + 1 : NULL;
}

const struct json_node *json_next(const struct json *j, const struct json_node *parent, const struct json_node *child)
{
    return child->end < parent->end ? j->nodes + child->end : NULL;
}

const struct json_node *json_get(const struct json *j, const struct json_node *obj, const char *key)
{
    if (!obj || obj->type != JSON_OBJECT)
        return NULL;
    size_t n = strlen(key);
    for (uint32_t at = (uint32_t)(obj - j->nodes) + 1; at < obj->end; at = j->nodes[at + 1].end)
        if (j->nodes[at].n_text == n && memcmp(j->nodes[at].text, key, n) == 0)
            return &j->nodes[at + 1];
    return NULL;
}

bool json_i64(const struct json_node *node, int64_t *out)
{
    if (!node || node->type != JSON_NUMBER)
        return false;
    const char *c = node->text;
    bool negative = *c == '-';
    int64_t value = 0;
    for (c += negative; *c; c++) {
        if (*c < '0' || *c > '9')
            return false;
        int digit = negative ? -(*c - '0') : *c - '0';
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *out = value;
    return true;
}

bool json_f64(const struct json_node *node, double *out)
{
    if (!node || node->type != JSON_NUMBER)
        return false;
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* the program's own may have a decimal comma */
    if (!c_locale)
        return false;
    double value = strtod_l(node->text, NULL, c_locale);
    freelocale(c_locale);
    if (!isfinite(value))
        return false;
    *out = value;
    return true;
}

bool json_is_string(const struct json_node *node, const char *text)
{
    size_t n = strlen(text);
    return node && node->type == JSON_STRING && node->n_text == n && memcmp(node->text, text, n) == 0;
}
