#include "base/json_writer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void separate(struct json_writer *j)
{
    if (j->separate)
        strbuf_add(j->out, ",", 1);
    j->separate = true;
}

void json_open(struct json_writer *j, char bracket)
{
    separate(j);
    strbuf_add(j->out, &bracket, 1);
    j->separate = false;
}

void json_close(struct json_writer *j, char bracket)
{
    strbuf_add(j->out, &bracket, 1);
    j->separate = true;
}

void json_key(struct json_writer *j, const char *key)
{
    json_string(j, key);
    strbuf_add(j->out, ":", 1);
    j->separate = false;
}

void json_string(struct json_writer *j, const char *s)
{
    separate(j);
    strbuf_add_json(j->out, s, strlen(s));
}

void json_decimal(struct json_writer *j, double value, int decimals)
{
    separate(j);
    if (isfinite(value))
        strbuf_add_decimal(j->out, value, decimals);
    else
        strbuf_add(j->out, "null", 4);
}

void json_integer(struct json_writer *j, uint64_t value)
{
    separate(j);
    strbuf_addf(j->out, "%" PRIu64, value);
}

void json_bool(struct json_writer *j, bool value)
{
    separate(j);
    strbuf_addf(j->out, value ? "true" : "false");
}

void json_null(struct json_writer *j)
{
    separate(j);
    strbuf_add(j->out, "null", 4);
}

void json_member_string(struct json_writer *j, const char *key, const char *value)
{
    json_key(j, key);
    json_string(j, value);
}

void json_member_number(struct json_writer *j, const char *key, double value)
{
    json_key(j, key);
    json_decimal(j, value, 3);
}

void json_member_integer(struct json_writer *j, const char *key, uint64_t value)
{
    json_key(j, key);
    json_integer(j, value);
}
