/* Merging against the definition, on random vocabularies: of all pairs in the word the lowest rank goes first, of equals
 * the leftmost. */
#include "text/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tokenizer_json.h"

#define LETTERS 3
#define MAX_MERGES 60
#define MAX_WORD 400

struct vocabulary {
    char text[LETTERS + MAX_MERGES][64];
    int32_t id[LETTERS + MAX_MERGES];
    int left[MAX_MERGES], right[MAX_MERGES], result[MAX_MERGES];
    int n_tokens, n_merges;
};

static int find(const struct vocabulary *v, const char *text)
{
    for (int i = 0; i < v->n_tokens; i++)
        if (strcmp(v->text[i], text) == 0)
            return i;
    return -1;
}

static void make(struct vocabulary *v, unsigned *seed)
{
    v->n_tokens = LETTERS;
    v->n_merges = 0;
    for (int i = 0; i < LETTERS; i++) {
        snprintf(v->text[i], sizeof v->text[i], "%c", 'a' + i);
        v->id[i] = 'a' + i;
    }
    for (int tries = rand_r(seed) % MAX_MERGES; tries > 0; tries--) {
        int left = rand_r(seed) % v->n_tokens, right = rand_r(seed) % v->n_tokens;
        char text[128];
        if (snprintf(text, sizeof text, "%s%s", v->text[left], v->text[right]) >= (int)sizeof v->text[0])
            continue;
        bool again = false;
        for (int i = 0; i < v->n_merges; i++)
            again = again || (v->left[i] == left && v->right[i] == right);
        if (again)
            continue;
        int result = find(v, text);
        if (result < 0) {
            result = v->n_tokens++;
            memcpy(v->text[result], text, strlen(text) + 1);
            v->id[result] = 1000 + result * 7 % 64; /* in no order, with gaps */
        }
        v->left[v->n_merges] = left;
        v->right[v->n_merges] = right;
        v->result[v->n_merges++] = result;
    }
}

static struct tokenizer *open_vocabulary(const struct vocabulary *v)
{
    struct strbuf vocab = {0}, merges = {0}, json = {0};
    for (int i = LETTERS; i < v->n_tokens; i++)
        strbuf_addf(&vocab, ",\"%s\":%d", v->text[i], (int)v->id[i]);
    for (int i = 0; i < v->n_merges; i++)
        strbuf_addf(&merges, "%s[\"%s\",\"%s\"]", i ? "," : "", v->text[v->left[i]], v->text[v->right[i]]);
    struct tokenizer_json parts = {.vocab = strbuf_text(&vocab), .merges = strbuf_text(&merges)};
    tokenizer_json_write(&json, &parts);
    struct tokenizer *tok;
    struct fathom_err err;
    if (tokenizer_parse(&tok, json.text, json.n, &err))
        fail_msg("%s", err.message);
    strbuf_free(&vocab);
    strbuf_free(&merges);
    strbuf_free(&json);
    return tok;
}

static int merge_by_definition(const struct vocabulary *v, int *tokens, int n)
{
    for (;;) {
        int best_rank = v->n_merges, best = -1;
        for (int i = 0; i + 1 < n; i++)
            for (int rank = 0; rank < best_rank; rank++)
                if (v->left[rank] == tokens[i] && v->right[rank] == tokens[i + 1]) {
                    best_rank = rank;
                    best = i;
                }
        if (best < 0)
            return n;
        tokens[best] = v->result[best_rank];
        memmove(tokens + best + 1, tokens + best + 2, (size_t)(n - best - 2) * sizeof *tokens);
        n--;
    }
}

static void test_equals_the_definition(void **state)
{
    (void)state;
    unsigned seed = 3;
    struct tokens out = {0};
    for (int round = 0; round < 150; round++) {
        struct vocabulary v;
        make(&v, &seed);
        struct tokenizer *tok = open_vocabulary(&v);
        for (int k = 0; k < 20; k++) {
            char word[MAX_WORD];
            int tokens[MAX_WORD], n = rand_r(&seed) % (k % 4 ? 60 : MAX_WORD), letters = 1 + rand_r(&seed) % LETTERS;
            for (int i = 0; i < n; i++) {
                tokens[i] = rand_r(&seed) % letters;
                word[i] = (char)('a' + tokens[i]);
            }
            n = merge_by_definition(&v, tokens, n);
            size_t n_word = 0;
            for (int i = 0; i < n; i++)
                n_word += strlen(v.text[tokens[i]]);
            out.n = 0;
            assert_int_equal(tokenizer_encode(tok, word, n_word, true, &out, NULL), FATHOM_OK);
            assert_int_equal(out.n, n);
            for (int i = 0; i < n; i++)
                assert_int_equal(out.ids[i], v.id[tokens[i]]);
        }
        tokenizer_close(tok);
    }
    tokens_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_equals_the_definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
