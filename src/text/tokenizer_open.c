/* Reading tokenizer.json. */
#include "base/checked.h"
#include "base/json.h"
#include "base/mapfile.h"
#include "base/utf8.h"
#include "text/tokenizer_data.h"

#include <stdlib.h>
#include <string.h>

#define MAX_FILE_BYTES ((size_t)64 << 20)
#define MAX_IDS (1 << 22)
#define BATCH 32 /* lookups whose cache lines are fetched ahead */

/* Most of a vocabulary is short: up to 8 bytes a slot holds the text itself, so that looking one up touches one line. */
struct slot {
    int32_t id;    /* -1: empty                                          */
    uint32_t tag;  /* 24 bits of the hash and the length, at most 255    */
    uint64_t head; /* the first 8 bytes, zeros behind the end            */
};

struct opener {
    struct tokenizer *tok;
    struct json j;
    const struct json_node *
        *by_id;         /* [MAX_IDS at most] the text of each id: a vocabulary key or an added token's content */
    bool *is_added;     /* [n_ids] that the text is an added token's                                           */
    struct slot *slots; /* vocabulary text -> id                                                               */
    size_t mask;
    struct hash_key key;
    size_t longest; /* vocabulary text */
    struct fathom_err *err;
};

static bool is_true(const struct json_node *node) { return node && node->type == JSON_TRUE; }
static bool is_null(const struct json_node *node) { return !node || node->type == JSON_NULL; }
static bool is_list(const struct json_node *node) { return node && node->type == JSON_ARRAY; }
static bool is_object(const struct json_node *node) { return node && node->type == JSON_OBJECT; }
static bool is_string(const struct json_node *node) { return node && node->type == JSON_STRING; }

static enum fathom_status unsupported(struct opener *o, const char *what)
{
    return fail(o->err, FATHOM_EUNSUPPORTED, "%s is not supported", what);
}

/* ---- what kind of tokenizer it is ---------------------------------------------------------------------------- */

/* The letters of the properties \p{X} that a regular expression names, as bits; the highest one for anything else. */
static uint32_t regex_properties(const struct json_node *regex)
{
    uint32_t found = 0;
    const char *p = regex->text, *end = p + regex->n_text;
    while (end - p >= 2) {
        if (*p != '\\') {
            p++;
            continue;
        }
        if (p[1] == 'p' && end - p >= 5 && p[2] == '{' && p[4] == '}' && p[3] >= 'A' && p[3] <= 'Z')
            found |= 1u << (p[3] - 'A');
        else if (p[1] == 'p' || p[1] == 'P')
            found |= 1u << 31;
        p += 2;
    }
    return found;
}

/* Whether a regular expression holds a character, itself or escaped as \uXXXX or \x{XXXX}. */
static bool regex_mentions(const struct json_node *regex, const char *itself, const char *hex)
{
    if (strstr(regex->text, itself))
        return true;
    for (const char *p = regex->text; (p = strcasestr(p, hex)) != NULL; p++)
        if (p > regex->text && (p[-1] == 'u' || p[-1] == '{'))
            return true;
    return false;
}

static const struct json_node *split_regex(const struct json *j, const struct json_node *split)
{
    const struct json_node *regex = json_get(j, json_get(j, split, "pattern"), "Regex");
    bool plain = json_is_string(json_get(j, split, "type"), "Split") &&
                 json_is_string(json_get(j, split, "behavior"), "Isolated") && !is_true(json_get(j, split, "invert"));
    return plain && is_string(regex) ? regex : NULL;
}

/* The expressions are known by what they are about, not by their spelling, of which there are several. */
static enum fathom_status check_pre_tokenizer(struct opener *o, const struct json_node *pre)
{
    const struct json *j = &o->j;
    const struct json_node *list = json_get(j, pre, "pretokenizers"), *steps[4];
    bool known = json_is_string(json_get(j, pre, "type"), "Sequence") && is_list(list) && list->n == 4;
    if (known) {
        size_t n = 0;
        for (const struct json_node *step = json_first(j, list); step; step = json_next(j, list, step))
            steps[n++] = step;
        const struct json_node *numbers = split_regex(j, steps[0]), *ideographs = split_regex(j, steps[1]),
                               *words = split_regex(j, steps[2]), *bytes = steps[3];
        const uint32_t letter = 1u << ('L' - 'A'), mark = 1u << ('M' - 'A'), number = 1u << ('N' - 'A'),
                       punctuation = 1u << ('P' - 'A'), symbol = 1u << ('S' - 'A');
        const struct json_node *use_regex = json_get(j, bytes, "use_regex");
        known = numbers && regex_properties(numbers) == number && strstr(numbers->text, "{1,3}") && ideographs &&
                regex_properties(ideographs) == 0 && regex_mentions(ideographs, "\u4e00", "4e00") &&
                regex_mentions(ideographs, "\u9fa5", "9fa5") && regex_mentions(ideographs, "\u30ff", "30ff") && words &&
                regex_properties(words) == (letter | mark | punctuation | symbol) &&
                json_is_string(json_get(j, bytes, "type"), "ByteLevel") && use_regex && use_regex->type == JSON_FALSE &&
                !is_true(json_get(j, bytes, "add_prefix_space"));
    }
    return known ? FATHOM_OK : unsupported(o, "a pre_tokenizer other than DeepSeek's (three splits, then bytes)");
}

static bool is_empty_string(const struct json_node *node) { return is_null(node) || json_is_string(node, ""); }

static enum fathom_status check_kind(struct opener *o, const struct json_node *root, const struct json_node *model)
{
    const struct json *j = &o->j;
    if (!is_object(model))
        return fail(o->err, FATHOM_EFORMAT, "no \"model\"");
    const struct json_node *type = json_get(j, model, "type"), *normalizer = json_get(j, root, "normalizer"),
                           *normalizers = json_get(j, normalizer, "normalizers"),
                           *decoder = json_get(j, root, "decoder"), *dropout = json_get(j, model, "dropout");
    double p;
    if (!is_null(type) && !json_is_string(type, "BPE"))
        return unsupported(o, "a model type other than BPE");
    if (is_true(json_get(j, model, "byte_fallback")))
        return unsupported(o, "byte_fallback");
    if (is_true(json_get(j, model, "ignore_merges")))
        return unsupported(o, "ignore_merges");
    if (!is_null(dropout) && (!json_f64(dropout, &p) || p != 0))
        return unsupported(o, "dropout");
    if (!is_empty_string(json_get(j, model, "continuing_subword_prefix")) ||
        !is_empty_string(json_get(j, model, "end_of_word_suffix")))
        return unsupported(o, "a prefix or suffix of words");
    if (!is_null(normalizer) && !(is_list(normalizers) && normalizers->n == 0))
        return unsupported(o, "a normalizer");
    if (!is_null(decoder) && !json_is_string(json_get(j, decoder, "type"), "ByteLevel"))
        return unsupported(o, "a decoder other than ByteLevel");
    return check_pre_tokenizer(o, json_get(j, root, "pre_tokenizer"));
}

/* ---- ids and their texts --------------------------------------------------------------------------------------- */

static enum fathom_status check_id(struct opener *o, const struct json_node *node, const struct json_node *text,
                                   int64_t *id)
{
    if (!json_i64(node, id) || *id < 0)
        return fail(o->err, FATHOM_EFORMAT, "id of token '%.100s' is not a number from 0 on", text->text);
    if (*id >= MAX_IDS)
        return fail(o->err, FATHOM_ELIMIT, "id %lld of token '%.100s' is over the limit of %d", (long long)*id,
                    text->text, MAX_IDS - 1);
    return FATHOM_OK;
}

/* The highest id, so that the tables can be made. */
static enum fathom_status count_ids(struct opener *o, const struct json_node *vocab, const struct json_node *added)
{
    const struct json *j = &o->j;
    int64_t id, highest = -1;
    enum fathom_status status;
    for (const struct json_node *text = json_first(j, vocab); text; text = json_next(j, vocab, text + 1)) {
        if ((status = check_id(o, text + 1, text, &id)))
            return status;
        highest = id > highest ? id : highest;
    }
    for (const struct json_node *item = json_first(j, added); item; item = json_next(j, added, item)) {
        const struct json_node *content = json_get(j, item, "content");
        if (!is_string(content))
            return fail(o->err, FATHOM_EFORMAT, "added token without a text");
        if ((status = check_id(o, json_get(j, item, "id"), content, &id)))
            return status;
        highest = id > highest ? id : highest;
    }
    o->tok->n_ids = (size_t)(highest + 1);
    return FATHOM_OK;
}

/* Where a text would be, to be fetched before it is looked at, and what its slot would say. */
struct place {
    size_t at;
    struct slot wanted;
};

static struct place place_of(const struct opener *o, const char *text, size_t n)
{
    uint64_t hash = hash_bytes(o->key, text, n);
    struct place place = {.at = hash & o->mask, .wanted.id = -1};
    place.wanted.tag = (uint32_t)(hash >> 32 << 8) | (uint32_t)(n < 255 ? n : 255);
    memcpy(&place.wanted.head, text, n < 8 ? n : 8);
    __builtin_prefetch(&o->slots[place.at]);
    return place;
}

/* The slot that holds a vocabulary text or is free for it. */
static struct slot *find_slot(const struct opener *o, struct place place, const char *text, size_t n)
{
    for (size_t at = place.at;; at = (at + 1) & o->mask) {
        struct slot *slot = &o->slots[at];
        if (slot->id < 0)
            return slot;
        if (slot->tag != place.wanted.tag || slot->head != place.wanted.head)
            continue;
        const struct json_node *other = o->by_id[slot->id];
        if (n <= 8 || (other->n_text == n && memcmp(other->text, text, n) == 0))
            return slot;
    }
}

static int32_t find_id(const struct opener *o, const char *text, size_t n)
{
    return find_slot(o, place_of(o, text, n), text, n)->id;
}

static enum fathom_status add_text(struct opener *o, const struct json_node *text, struct place place)
{
    int64_t id = -1;
    json_i64(text + 1, &id); /* checked by count_ids */
    if (text->n_text == 0)
        return fail(o->err, FATHOM_EFORMAT, "token %lld is empty", (long long)id);
    if (o->by_id[id])
        return fail(o->err, FATHOM_EFORMAT, "tokens '%.100s' and '%.100s' have the same id %lld", o->by_id[id]->text,
                    text->text, (long long)id);
    struct slot *slot = find_slot(o, place, text->text, text->n_text);
    *slot = place.wanted;
    slot->id = (int32_t)id;
    o->by_id[id] = text;
    o->longest = text->n_text > o->longest ? text->n_text : o->longest;
    return FATHOM_OK;
}

static enum fathom_status read_vocab(struct opener *o, const struct json_node *vocab)
{
    size_t n_slots = 16, n_ids = o->tok->n_ids;
    while (n_slots / 2 < vocab->n)
        n_slots *= 2;
    o->slots = malloc(n_slots * sizeof *o->slots);
    o->by_id = calloc(n_ids + 1, sizeof *o->by_id);
    o->is_added = calloc(n_ids + 1, sizeof *o->is_added);
    if (!o->slots || !o->by_id || !o->is_added)
        return fail_nomem(o->err, n_slots * sizeof *o->slots, "the vocabulary");
    memset(o->slots, 0xff, n_slots * sizeof *o->slots);
    o->mask = n_slots - 1;
    o->key = hash_key_random();
    struct place places[BATCH];
    const struct json_node *text = json_first(&o->j, vocab), *ahead = text;
    while (text) {
        for (int i = 0; i < BATCH && ahead; i++, ahead = json_next(&o->j, vocab, ahead + 1))
            places[i] = place_of(o, ahead->text, ahead->n_text);
        for (int i = 0; text != ahead; i++, text = json_next(&o->j, vocab, text + 1)) {
            enum fathom_status status = add_text(o, text, places[i]);
            if (status)
                return status;
        }
    }
    return FATHOM_OK;
}

static enum fathom_status read_added_token(struct opener *o, const struct json_node *item)
{
    const struct json *j = &o->j;
    const struct json_node *content = json_get(j, item, "content");
    int64_t id = -1;
    json_i64(json_get(j, item, "id"), &id);
    if (content->n_text == 0)
        return fail(o->err, FATHOM_EFORMAT, "added token %lld is empty", (long long)id);
    if (content->n_text > ADDED_MAX_BYTES)
        return fail(o->err, FATHOM_ELIMIT, "added token %lld has %zu bytes, more than %d", (long long)id,
                    content->n_text, ADDED_MAX_BYTES);
    const char *const flags[] = {"single_word", "lstrip", "rstrip"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (is_true(json_get(j, item, flags[i])))
            return fail(o->err, FATHOM_EUNSUPPORTED, "'%s' of added token '%s' is not supported", flags[i],
                        content->text);
    const struct json_node *other = o->by_id[id];
    bool same = other && other->n_text == content->n_text && memcmp(other->text, content->text, other->n_text) == 0;
    if (o->is_added[id] || (other && !same))
        return fail(o->err, FATHOM_EFORMAT, "added token '%s' has the id %lld of token '%.100s'", content->text,
                    (long long)id, other->text);
    int32_t in_vocab = find_id(o, content->text, content->n_text);
    if (in_vocab >= 0 && in_vocab != id)
        return fail(o->err, FATHOM_EFORMAT, "added token '%s' has id %lld, but %d in the vocabulary", content->text,
                    (long long)id, (int)in_vocab);
    o->by_id[id] = content;
    o->is_added[id] = true;
    o->tok->is_special[id] = is_true(json_get(j, item, "special"));
    struct added_set *set = &o->tok->added[is_true(json_get(j, item, "normalized"))];
    set->items[set->n++] = (struct added){content->text, content->n_text, (int32_t)id};
    return FATHOM_OK;
}

static enum fathom_status read_added(struct opener *o, const struct json_node *added)
{
    struct tokenizer *tok = o->tok;
    size_t n = added ? added->n : 0;
    tok->is_special = calloc(tok->n_ids + 1, sizeof *tok->is_special);
    tok->added[0].items = calloc(n + 1, sizeof *tok->added[0].items);
    tok->added[1].items = calloc(n + 1, sizeof *tok->added[1].items);
    if (!tok->is_special || !tok->added[0].items || !tok->added[1].items)
        return fail_nomem(o->err, n * sizeof *tok->added[0].items, "added tokens");
    for (const struct json_node *item = json_first(&o->j, added); item; item = json_next(&o->j, added, item)) {
        enum fathom_status status = read_added_token(o, item);
        if (status)
            return status;
    }
    for (int i = 0; i < 2; i++)
        added_sort(&tok->added[i]);
    for (size_t i = 0; i < tok->added[1].n; i++) {
        const struct added *item = &tok->added[1].items[i];
        if (added_find(&tok->added[0], item->text, item->n))
            return fail(o->err, FATHOM_EFORMAT, "added token '%s' is there twice", item->text);
    }
    for (int set = 0; set < 2; set++)
        for (size_t i = 1; i < tok->added[set].n; i++) {
            const struct added *item = &tok->added[set].items[i];
            if (item[-1].n == item->n && memcmp(item[-1].text, item->text, item->n) == 0)
                return fail(o->err, FATHOM_EFORMAT, "added token '%s' is there twice", item->text);
        }
    return FATHOM_OK;
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

/* GPT-2's table of the characters that stand for bytes: printable ones for themselves, the others from U+0100 on. */
static int byte_of_character(uint32_t code)
{
    if ((code >= 0x21 && code <= 0x7e) || (code >= 0xa1 && code <= 0xac) || (code >= 0xae && code <= 0xff))
        return (int)code;
    if (code >= 0x100 && code <= 0x120)
        return (int)code - 0x100;
    if (code >= 0x121 && code <= 0x142)
        return (int)code - 0x121 + 0x7f;
    return code == 0x143 ? 0xad : -1;
}

/* Writes the bytes that a vocabulary text stands for; one with characters outside the table stands for itself. */
static size_t piece_bytes(const struct json_node *text, char *out)
{
    size_t n = 0;
    for (size_t at = 0; at < text->n_text;) {
        uint32_t code = 0;
        at += utf8_decode(text->text + at, text->n_text - at, &code);
        int byte = byte_of_character(code);
        if (byte < 0) {
            memcpy(out, text->text, text->n_text);
            return text->n_text;
        }
        out[n++] = (char)byte;
    }
    return n;
}

static enum fathom_status make_pieces(struct opener *o)
{
    struct tokenizer *tok = o->tok;
    size_t bytes = 0, at = 0;
    for (size_t id = 0; id < tok->n_ids; id++)
        bytes += o->by_id[id] ? o->by_id[id]->n_text : 0;
    tok->bytes = malloc(bytes + 1);
    tok->offsets = malloc((tok->n_ids + 1) * sizeof *tok->offsets);
    if (!tok->bytes || !tok->offsets)
        return fail_nomem(o->err, bytes, "the vocabulary");
    for (size_t id = 0; id < tok->n_ids; id++) {
        const struct json_node *text = o->by_id[id];
        tok->offsets[id] = at;
        if (text && o->is_added[id]) {
            memcpy(tok->bytes + at, text->text, text->n_text);
            at += text->n_text;
        } else if (text) {
            at += piece_bytes(text, tok->bytes + at);
        }
    }
    tok->offsets[tok->n_ids] = at;
    for (int set = 0; set < 2; set++) /* their texts lived in the JSON so far */
        for (size_t i = 0; i < tok->added[set].n; i++)
            tok->added[set].items[i].text = tok->bytes + tok->offsets[tok->added[set].items[i].id];
    return FATHOM_OK;
}

/* ---- merges -------------------------------------------------------------------------------------------------------- */

/* The two halves of a merge: a pair of strings, or one string with a blank between them. */
static bool merge_halves(const struct json *j, const struct json_node *node, const char *half[2], size_t n[2])
{
    if (node->type == JSON_ARRAY && node->n == 2) {
        const struct json_node *left = json_first(j, node), *right = json_next(j, node, left);
        half[0] = left->text;
        half[1] = right->text;
        n[0] = left->n_text;
        n[1] = right->n_text;
        return is_string(left) && is_string(right);
    }
    if (node->type != JSON_STRING)
        return false;
    const char *blank = memchr(node->text, ' ', node->n_text);
    if (!blank)
        return false;
    half[0] = node->text;
    half[1] = blank + 1;
    n[0] = (size_t)(blank - node->text);
    n[1] = node->n_text - n[0] - 1;
    return !memchr(half[1], ' ', n[1]);
}

/* The id of two texts joined. Results of merges mostly lie in the vocabulary in the order of the merges, so the id after
 * the last one is tried first. */
static int32_t find_joined(const struct opener *o, const char *const half[2], const size_t n[2], int32_t last,
                           char *joined)
{
    if (n[0] + n[1] > o->longest)
        return -1;
    const struct json_node *next = (size_t)last + 1 < o->tok->n_ids ? o->by_id[last + 1] : NULL;
    if (next && !o->is_added[last + 1] && next->n_text == n[0] + n[1] && memcmp(next->text, half[0], n[0]) == 0 &&
        memcmp(next->text + n[0], half[1], n[1]) == 0)
        return last + 1;
    memcpy(joined, half[0], n[0]);
    memcpy(joined + n[0], half[1], n[1]);
    return find_id(o, joined, n[0] + n[1]);
}

struct pending_merge {
    const char *half[2];
    size_t n[2];
    struct place places[2];
};

static enum fathom_status add_merge(struct opener *o, const struct pending_merge *m, uint32_t rank, int32_t *last,
                                    char *joined)
{
    int32_t part[2], id = -1;
    for (int i = 0; i < 2; i++)
        part[i] = find_slot(o, m->places[i], m->half[i], m->n[i])->id;
    if (part[0] >= 0 && part[1] >= 0)
        id = find_joined(o, m->half, m->n, *last, joined);
    if (id < 0)
        return fail(o->err, FATHOM_EFORMAT,
                    "merge %u of '%.*s' and '%.*s': a part or the result is not in the vocabulary", (unsigned)rank,
                    (int)(m->n[0] < 100 ? m->n[0] : 100), m->half[0], (int)(m->n[1] < 100 ? m->n[1] : 100), m->half[1]);
    bpe_add(&o->tok->bpe, (struct merge){(uint32_t)part[0], (uint32_t)part[1], rank, (uint32_t)id});
    *last = id;
    return FATHOM_OK;
}

static enum fathom_status add_merges(struct opener *o, const struct json_node *merges, char *joined)
{
    struct pending_merge batch[BATCH];
    const struct json_node *node = json_first(&o->j, merges);
    uint32_t rank = 0;
    int32_t last = -1;
    while (node) {
        int n = 0;
        for (; n < BATCH && node; n++, node = json_next(&o->j, merges, node)) {
            struct pending_merge *m = &batch[n];
            if (!merge_halves(&o->j, node, m->half, m->n))
                return fail(o->err, FATHOM_EFORMAT, "merge %u is neither \"a b\" nor [\"a\", \"b\"]",
                            (unsigned)rank + (unsigned)n);
            for (int i = 0; i < 2; i++)
                m->places[i] = place_of(o, m->half[i], m->n[i]);
        }
        for (int i = 0; i < n; i++) {
            enum fathom_status status = add_merge(o, &batch[i], rank++, &last, joined);
            if (status)
                return status;
        }
    }
    return FATHOM_OK;
}

static enum fathom_status read_merges(struct opener *o, const struct json_node *merges)
{
    enum fathom_status status = bpe_init(&o->tok->bpe, merges->n, o->err);
    if (status)
        return status;
    char *joined = malloc(o->longest + 1);
    if (!joined)
        return fail_nomem(o->err, o->longest, "merges");
    status = add_merges(o, merges, joined);
    free(joined);
    return status;
}

static enum fathom_status find_bytes(struct opener *o)
{
    for (uint32_t code = 0; code < 0x144; code++) {
        int byte = byte_of_character(code);
        if (byte < 0)
            continue;
        char text[4];
        int32_t id = find_id(o, text, utf8_encode(code, text));
        if (id < 0)
            return fail(o->err, FATHOM_EFORMAT, "no token for byte 0x%02x", (unsigned)byte);
        o->tok->bpe.byte_ids[byte] = (uint32_t)id;
    }
    return FATHOM_OK;
}

static enum fathom_status read_tokenizer(struct opener *o)
{
    const struct json *j = &o->j;
    const struct json_node *root = json_root(j), *model = json_get(j, root, "model");
    const struct json_node *vocab = json_get(j, model, "vocab"), *merges = json_get(j, model, "merges"),
                           *added = json_get(j, root, "added_tokens");
    enum fathom_status status;
    if ((status = check_kind(o, root, model)))
        return status;
    if (!is_object(vocab) || !is_list(merges))
        return fail(o->err, FATHOM_EFORMAT, "the model's \"vocab\" is no object or its \"merges\" no list");
    if (is_null(added))
        added = NULL;
    else if (!is_list(added))
        return fail(o->err, FATHOM_EFORMAT, "\"added_tokens\" is no list");
    if ((status = count_ids(o, vocab, added)) || (status = read_vocab(o, vocab)) || (status = read_added(o, added)) ||
        (status = make_pieces(o)) || (status = read_merges(o, merges)))
        return status;
    return find_bytes(o);
}

enum fathom_status tokenizer_parse(struct tokenizer **out, const char *json, size_t n, struct fathom_err *err)
{
    *out = NULL;
    struct opener o = {.err = err};
    enum fathom_status status = json_parse(&o.j, json, n, err);
    if (status)
        return status;
    o.tok = calloc(1, sizeof *o.tok);
    status = o.tok ? read_tokenizer(&o) : fail_nomem(err, sizeof *o.tok, "a tokenizer");
    json_free(&o.j);
    free(o.slots);
    free(o.by_id);
    free(o.is_added);
    if (status)
        tokenizer_close(o.tok);
    else
        *out = o.tok;
    return status;
}

enum fathom_status tokenizer_open(struct tokenizer **out, const char *path, struct fathom_err *err)
{
    *out = NULL;
    struct mapfile file;
    enum fathom_status status = mapfile_open(&file, path, err);
    if (status)
        return status;
    if (file.size > MAX_FILE_BYTES)
        status = fail(err, FATHOM_ELIMIT, "'%s' has %zu bytes, more than %zu", path, file.size, MAX_FILE_BYTES);
    else if ((status = tokenizer_parse(out, (const char *)file.data, file.size, err)))
        fail_at(err, "'%s': ", path);
    mapfile_close(&file);
    return status;
}
