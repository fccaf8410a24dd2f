#include "bench_report.h"

#include "json.h"

#include <stdio.h>
#include <stdlib.h>

struct summary {
    double median, low, high;
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void samples_add(struct samples *s, double value) { s->value[s->n++] = value; }

static struct summary summarise(struct samples *s)
{
    qsort(s->value, s->n, sizeof *s->value, by_value);
    return (struct summary){(s->value[s->n / 2] + s->value[(s->n - 1) / 2]) / 2, s->value[0], s->value[s->n - 1]};
}

static const char *dtype(const struct bench_result *b) { return b->dtype == FATHOM_BF16 ? "bf16" : "f32"; }

static double per_second(double amount, double ms) { return ms > 0 ? amount / ms * 1e3 : 0; }

static double share(double achieved, double limit) { return limit > 0 ? achieved / limit : 0; }

void bench_table(struct bench_result *b, struct text *out)
{
    const struct fathom_stats *s = &b->stats;
    struct summary fma = summarise(&b->fma), memory = summarise(&b->memory), vision = summarise(&b->vision),
                   prefill = summarise(&b->prefill), decode = summarise(&b->decode);
    const struct {
        const char *name, *limit_name;
        struct summary ms;
        double amount, limit;
        const char *unit;
    } stages[] = {
        {"vision", "multiply-adds", vision, s->vision_flop, fma.median, "GFLOP/s"},
        {"prefill", "multiply-adds", prefill, s->prefill_flop, fma.median, "GFLOP/s"},
        {"decode", "memory reads", decode, s->decode_bytes, memory.median, "GB/s"},
    };
    text_add_format(out, "fathom %s, %s, %s, %d thread%s; page of %dx%d, %zu view%s, %zu + %zu tokens; %d run%s\n",
                    fathom_version(), b->machine.isa, dtype(b), b->machine.n_threads,
                    b->machine.n_threads == 1 ? "" : "s", b->width, b->height, s->n_views, s->n_views == 1 ? "" : "s",
                    s->n_prompt_tokens, s->n_output_tokens, b->n_runs, b->n_runs == 1 ? "" : "s");
    text_add_format(
        out, "machine  %.1f GFLOP/s of multiply-adds (%.1f to %.1f), %.2f GB/s of memory reads (%.2f to %.2f)\n\n",
        fma.median / 1e9, fma.low / 1e9, fma.high / 1e9, memory.median / 1e9, memory.low / 1e9, memory.high / 1e9);
    text_add_format(out, "%-8s %10s  %-23s %18s  %s\n", "stage", "median ms", "spread", "reached",
                    "share of the machine's");
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        double rate = per_second(stages[i].amount, stages[i].ms.median);
        char spread[48], reached[48];
        snprintf(spread, sizeof spread, "%.1f to %.1f", stages[i].ms.low, stages[i].ms.high);
        snprintf(reached, sizeof reached, "%.2f %s", rate / 1e9, stages[i].unit);
        text_add_format(out, "%-8s %10.1f  %-23s %18s  %.0f %% of %s\n", stages[i].name, stages[i].ms.median, spread,
                        reached, 100 * share(rate, stages[i].limit), stages[i].limit_name);
    }
    text_add_format(out, "\nprefill %.1f tokens/s, decode %.1f tokens/s\n",
                    per_second((double)s->n_prompt_tokens, prefill.median),
                    per_second((double)s->n_output_tokens, decode.median));
}

static void field(struct json *j, const char *key, double value)
{
    json_key(j, key);
    json_number(j, value);
}

static void field_summary(struct json *j, const char *key, struct summary s)
{
    json_key(j, key);
    json_open(j, '{');
    field(j, "median", s.median);
    field(j, "min", s.low);
    field(j, "max", s.high);
    json_close(j, '}');
}

static void field_stage(struct json *j, const char *key, struct summary ms, const char *rate_key, double amount,
                        double limit)
{
    double rate = per_second(amount, ms.median);
    json_key(j, key);
    json_open(j, '{');
    field_summary(j, "ms", ms);
    field(j, rate_key, rate);
    field(j, "share", share(rate, limit));
    json_close(j, '}');
}

void bench_json(struct bench_result *b, struct text *out)
{
    const struct fathom_stats *s = &b->stats;
    struct summary fma = summarise(&b->fma), memory = summarise(&b->memory), prefill = summarise(&b->prefill),
                   decode = summarise(&b->decode);
    struct json j = {.text = *out};
    json_open(&j, '{');
    json_key(&j, "fathom");
    json_string(&j, fathom_version());
    json_key(&j, "isa");
    json_string(&j, b->machine.isa);
    json_key(&j, "dtype");
    json_string(&j, dtype(b));
    field(&j, "threads", b->machine.n_threads);
    field(&j, "width", b->width);
    field(&j, "height", b->height);
    field(&j, "views", (double)s->n_views);
    field(&j, "prompt_tokens", (double)s->n_prompt_tokens);
    field(&j, "output_tokens", (double)s->n_output_tokens);
    field(&j, "runs", b->n_runs);
    field_summary(&j, "fma_flop_s", fma);
    field_summary(&j, "read_bytes_s", memory);
    field_stage(&j, "vision", summarise(&b->vision), "flop_s", s->vision_flop, fma.median);
    field_stage(&j, "prefill", prefill, "flop_s", s->prefill_flop, fma.median);
    field_stage(&j, "decode", decode, "bytes_s", s->decode_bytes, memory.median);
    field(&j, "prefill_tok_s", per_second((double)s->n_prompt_tokens, prefill.median));
    field(&j, "decode_tok_s", per_second((double)s->n_output_tokens, decode.median));
    json_close(&j, '}');
    text_add(&j.text, "\n", 1);
    *out = j.text;
}
