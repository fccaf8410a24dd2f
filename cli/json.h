/* Writes JSON on one line. Separators are put by the writer; what goes where is the caller's business. */
#ifndef FATHOM_CLI_JSON_H
#define FATHOM_CLI_JSON_H

#include "text.h"

#include <stdint.h>

struct json {
    struct text text;
    bool separate; /* the next value needs a comma in front */
};

/* '{' or '[', and its closing partner. */
void json_open(struct json *j, char bracket);
void json_close(struct json *j, char bracket);

void json_key(struct json *j, const char *key);

/* Bytes that are not UTF-8 become U+FFFD: a file's name may hold any bytes, JSON may not. */
void json_string(struct json *j, const char *s);

/* Written with at most 3 decimals; infinity and NaN, which JSON lacks, become null. */
void json_number(struct json *j, double value);
void json_integer(struct json *j, uint64_t value);
void json_null(struct json *j);

#endif
