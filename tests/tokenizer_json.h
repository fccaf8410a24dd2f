/* Small tokenizer.json texts for tests: the 256 bytes are tokens 0 to 255; each test adds what it is about. */
#ifndef FATHOM_TESTS_TOKENIZER_JSON_H
#define FATHOM_TESTS_TOKENIZER_JSON_H

#include "base/strbuf.h"
#include "base/utf8.h"

#include <string.h>

#define SPLIT(regex)                                                                                                   \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex "\"},\"behavior\":\"Isolated\",\"invert\":false}"
#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":false}"
#define NUMBERS SPLIT("\\\\p{N}{1,3}")
#define IDEOGRAPHS SPLIT("[一-龥぀-ゟ゠-ヿ]+")
#define WORDS                                                                                                          \
    SPLIT("[!\\\"#$%&'()*+,\\\\-./:;<=>?@\\\\[\\\\\\\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\\\p{L}\\\\p{P}\\\\p{S}]?"       \
          "[\\\\p{L}\\\\p{M}]+| ?[\\\\p{P}\\\\p{S}]+[\\r\\n]*|\\\\s*[\\r\\n]+|\\\\s+(?!\\\\S)|\\\\s+")
#define SEQUENCE(steps) "{\"type\":\"Sequence\",\"pretokenizers\":[" steps "]}"

struct tokenizer_json {
    const char *top;           /* further members of the root, each with a comma behind it                     */
    const char *pre_tokenizer; /* NULL: DeepSeek's                                                             */
    const char *model;         /* further members of the model, each with a comma behind it                    */
    const char *vocab;         /* further entries of the vocabulary, each with a comma before it               */
    const char *merges;        /* the list without its brackets                                                */
    const char *added;         /* the list without its brackets                                                */
};

static inline void tokenizer_json_write(struct strbuf *s, const struct tokenizer_json *t)
{
    const char *pre = t->pre_tokenizer ? t->pre_tokenizer : SEQUENCE(NUMBERS "," IDEOGRAPHS "," WORDS "," BYTE_LEVEL);
    strbuf_addf(s, "{%s\"added_tokens\":[%s],\"pre_tokenizer\":", t->top ? t->top : "", t->added ? t->added : "");
    strbuf_add(s, pre, strlen(pre));
    strbuf_addf(s, ",\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{%s\"type\":\"BPE\",\"vocab\":{",
                t->model ? t->model : "");
    uint32_t next = 0x100; /* printable characters of Latin-1 stand for themselves, these for the other bytes */
    for (uint32_t byte = 0; byte < 256; byte++) {
        char text[4];
        bool itself = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
        size_t n = utf8_encode(itself ? byte : next++, text);
        strbuf_add(s, byte ? "," : "", byte ? 1 : 0);
        strbuf_add_json(s, text, n);
        strbuf_addf(s, ":%u", (unsigned)byte);
    }
    const char *vocab = t->vocab ? t->vocab : "", *merges = t->merges ? t->merges : "";
    strbuf_add(s, vocab, strlen(vocab));
    strbuf_addf(s, "},\"merges\":[");
    strbuf_add(s, merges, strlen(merges));
    strbuf_addf(s, "]}}");
}

#endif
