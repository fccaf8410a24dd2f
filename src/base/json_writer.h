/* Writes JSON on one line. Separators are put by the writer; what goes where is the caller's business. */
#ifndef FATHOM_BASE_JSON_WRITER_H
#define FATHOM_BASE_JSON_WRITER_H

#include "base/strbuf.h"

struct json_writer {
    struct strbuf *out; /* borrowed                                     */
    bool separate;      /* the next value needs a comma in front        */
};

/* '{' or '[', and its closing partner. */
void json_open(struct json_writer *j, char bracket);
void json_close(struct json_writer *j, char bracket);
void json_key(struct json_writer *j, const char *key);

/* Bytes that are not UTF-8 become U+FFFD: a file's name may hold any bytes, JSON may not. */
void json_string(struct json_writer *j, const char *s);

/* At most this many decimals (0 to 9); infinity and NaN, which JSON lacks, become null. */
void json_decimal(struct json_writer *j, double value, int decimals);
void json_integer(struct json_writer *j, uint64_t value);
void json_bool(struct json_writer *j, bool value);
void json_null(struct json_writer *j);

/* A member: its key and its value, with at most 3 decimals. */
void json_member_string(struct json_writer *j, const char *key, const char *value);
void json_member_number(struct json_writer *j, const char *key, double value);
void json_member_integer(struct json_writer *j, const char *key, uint64_t value);

#endif
