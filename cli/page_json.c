#include "page_json.h"

#include <sys/resource.h>

double decode_tok_s(const struct fathom_stats *stats)
{
    return stats->decode_ms > 0 ? (double)stats->n_output_tokens / stats->decode_ms * 1e3 : 0;
}

static void field_string(struct json *j, const char *key, const char *value)
{
    json_key(j, key);
    json_string(j, value);
}

static void field_number(struct json *j, const char *key, double value)
{
    json_key(j, key);
    json_number(j, value);
}

static void field_integer(struct json *j, const char *key, uint64_t value)
{
    json_key(j, key);
    json_integer(j, value);
}

static uint64_t max_rss_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

static void stats_fields(struct json *j, const struct fathom_stats *s)
{
    field_integer(j, "views", s->n_views);
    field_integer(j, "prompt_tokens", s->n_prompt_tokens);
    field_integer(j, "output_tokens", s->n_output_tokens);
    field_number(j, "decode_image_ms", s->decode_image_ms);
    field_number(j, "vision_ms", s->vision_ms);
    field_number(j, "prefill_ms", s->prefill_ms);
    field_number(j, "decode_ms", s->decode_ms);
    field_number(j, "ttft_ms", s->decode_image_ms + s->vision_ms + s->prefill_ms);
    field_number(j, "tok_s", decode_tok_s(s));
    field_integer(j, "arena_peak_bytes", s->arena_peak_bytes);
    field_integer(j, "vision_peak_bytes", s->vision_peak_bytes);
    field_integer(j, "kv_bytes", s->kv_bytes);
    field_integer(j, "packed_bytes", s->packed_bytes);
    field_integer(j, "mapped_bytes", s->mapped_bytes);
    field_integer(j, "max_rss_bytes", max_rss_bytes());
}

static void head(struct json *j, const char *file)
{
    json_open(j, '{');
    field_integer(j, "schema", PAGE_SCHEMA);
    field_string(j, "fathom", fathom_version());
    field_string(j, "file", file);
}

static void blocks(struct json *j, const struct fathom_page *page)
{
    json_open(j, '[');
    for (size_t i = 0; i < page->n_blocks; i++) {
        const struct fathom_block *block = &page->blocks[i];
        json_open(j, '{');
        field_string(j, "label", block->label);
        field_string(j, "text", block->text);
        json_key(j, "boxes");
        json_open(j, '[');
        for (size_t b = 0; b < block->n_boxes; b++) {
            const struct fathom_box *box = &block->boxes[b];
            const int sides[] = {box->x0, box->y0, box->x1, box->y1};
            json_open(j, '[');
            for (int side = 0; side < 4; side++)
                json_number(j, sides[side]);
            json_close(j, ']');
        }
        json_close(j, ']');
        json_close(j, '}');
    }
    json_close(j, ']');
}

void page_json(struct json *j, const char *file, const struct fathom_page *page)
{
    head(j, file);
    field_integer(j, "page", page->number);
    field_string(j, "status", fathom_page_status_name(page->status));
    if (page->status == FATHOM_PAGE_FAILED) {
        field_string(j, "error", page->err.message);
    } else {
        field_number(j, "width", page->width);
        field_number(j, "height", page->height);
        field_string(j, "text", page->markdown);
        field_string(j, "raw", page->raw);
        json_key(j, "blocks");
        blocks(j, page);
        json_key(j, "stats");
        json_open(j, '{');
        stats_fields(j, &page->stats);
        json_close(j, '}');
    }
    json_close(j, '}');
}

void page_json_failure(struct json *j, const char *file, const struct fathom_err *err)
{
    head(j, file);
    json_key(j, "page");
    json_null(j);
    field_string(j, "status", fathom_page_status_name(FATHOM_PAGE_FAILED));
    field_string(j, "error", err->message);
    json_close(j, '}');
}

void page_json_stats(struct json *j, const char *file, const struct fathom_page *page)
{
    json_open(j, '{');
    field_string(j, "file", file);
    field_integer(j, "page", page->number);
    field_string(j, "status", fathom_page_status_name(page->status));
    stats_fields(j, &page->stats);
    json_close(j, '}');
}
