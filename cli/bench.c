/* fathom bench: the stages of reading a page, beside what the machine can do at most. */
#include "bench_page.h"
#include "bench_report.h"
#include "command.h"
#include "interrupt.h"
#include "options.h"
#include "output.h"
#include "terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_options {
    struct engine_options engine;
    int n_runs, n_tokens, width, height;
    bool json;
};

enum { KEY_RUNS = 0x200, KEY_TOKENS, KEY_PAGE, KEY_FORMAT };

static const struct argp_option option_table[] = {
    {.name = "runs", .key = KEY_RUNS, .arg = "N", .doc = "Pages to time, after one to warm up (default: 5)"},
    {.name = "tokens", .key = KEY_TOKENS, .arg = "N", .doc = "Tokens to generate at most (default: 256)"},
    {.name = "page",
     .key = KEY_PAGE,
     .arg = "WIDTHxHEIGHT",
     .doc = "Size of the page in pixels (default: 1240x1754, A4 at 150 dpi)"},
    {.name = "format", .key = KEY_FORMAT, .arg = "text|json", .doc = "A table, or one JSON object (default: text)"},
    {0},
};

static const char doc[] =
    "Times vision, prefill and decode on a drawn page of text, and says which share of the machine's "
    "own limits they reach: fused multiply-adds for vision and prefill, reading memory for decode. "
    "The limits are measured in the same run, before, between and after the pages, with 1 GiB of memory to read.\n"
    "\n"
    "  fathom bench                      the built-in model\n"
    "  fathom bench -m DeepSeek-OCR-2    weights that you downloaded\n"
    "  fathom bench --threads 1 --isa avx2 --format json";

static void set_page(struct argp_state *state, struct bench_options *o, const char *arg)
{
    char width[12];
    size_t n = strcspn(arg, "x");
    if (n >= sizeof width || arg[n] != 'x')
        argp_error(state, "--page must be WIDTHxHEIGHT, not '%s'", arg);
    snprintf(width, sizeof width, "%.*s", (int)n, arg);
    o->width = (int)option_integer(state, "--page's width", width, 64, 8192);
    o->height = (int)option_integer(state, "--page's height", arg + n + 1, 64, 8192);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    static const char *const formats[] = {"text", "json", NULL};
    struct bench_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &o->engine; return 0;
    case KEY_RUNS: o->n_runs = (int)option_integer(state, "--runs", arg, 1, BENCH_MAX_RUNS); return 0;
    case KEY_TOKENS: o->n_tokens = (int)option_integer(state, "--tokens", arg, 1, 1000000); return 0;
    case KEY_PAGE: set_page(state, o, arg); return 0;
    case KEY_FORMAT: o->json = option_choice(state, "--format", arg, formats) == 1; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

struct bench {
    struct terminal terminal;
    const struct bench_options *options;
    size_t run;
    enum fathom_page_status status; /* of the last page */
    struct fathom_err page_err;
    struct bench_result result;
};

static bool on_stage(void *user, const char *stage, size_t done, size_t total)
{
    struct bench *b = user;
    terminal_progress(&b->terminal, "page %zu of %d: %s %zu/%zu", b->run, b->options->n_runs, stage, done, total);
    return !interrupt_signal();
}

static bool on_text(void *user, const char *text, size_t n)
{
    (void)text, (void)n;
    return on_stage(user, "decode", 0, 0);
}

static bool on_page(void *user, const struct fathom_page *page)
{
    struct bench *b = user;
    b->status = page->status;
    b->page_err = page->err;
    b->result.stats = page->stats;
    return true;
}

static bool measure_machine(struct bench *b, struct engine *engine, struct fathom_err *err)
{
    if (fathom_measure_machine(engine->context, &b->result.machine, err) != FATHOM_OK)
        return false;
    samples_add(&b->result.fma, b->result.machine.fma_flop_s);
    samples_add(&b->result.memory, b->result.machine.read_bytes_s);
    return true;
}

static bool read_page(struct bench *b, struct engine *engine, const uint8_t *rgb, struct fathom_err *err)
{
    const struct fathom_callbacks callbacks = {.user = b, .on_stage = on_stage, .on_text = on_text, .on_page = on_page};
    struct fathom_read_options read = fathom_read_defaults();
    read.max_tokens = b->options->n_tokens;
    read.no_retry = true; /* one page, one reading */
    if (fathom_read_pixels(engine->context, rgb, b->options->width, b->options->height, &read, &callbacks, err))
        return false;
    if (b->status == FATHOM_PAGE_FAILED) {
        *err = b->page_err;
        return false;
    }
    return true;
}

/* One page to warm up; then limits and pages in turns, limits first and last. */
static bool measure(struct bench *b, struct engine *engine, const uint8_t *rgb, struct fathom_err *err)
{
    if (!read_page(b, engine, rgb, err) || !measure_machine(b, engine, err))
        return false;
    for (b->run = 1; b->run <= (size_t)b->options->n_runs; b->run++) {
        if (!read_page(b, engine, rgb, err) || !measure_machine(b, engine, err))
            return false;
        const struct fathom_stats *s = &b->result.stats;
        samples_add(&b->result.vision, s->vision_ms);
        samples_add(&b->result.prefill, s->prefill_ms);
        samples_add(&b->result.decode, s->decode_ms);
    }
    return true;
}

static int report(struct bench_result *b, bool json)
{
    struct text text = {0};
    struct output out;
    if (json)
        bench_json(b, &text);
    else
        bench_table(b, &text);
    bool ok = !text.failed && output_open(&out, NULL);
    if (text.failed)
        print_error("out of memory");
    if (ok) {
        output_write(&out, text.bytes, text.n);
        ok = output_close(&out, true);
    }
    text_free(&text);
    return ok ? EXIT_DONE : EXIT_FAILED;
}

static int run(const struct bench_options *options)
{
    struct engine engine = {0};
    struct fathom_err err = {0};
    struct bench *b = calloc(1, sizeof *b);
    uint8_t *rgb = bench_page(options->width, options->height);
    int status = EXIT_FAILED;
    if (!b || !rgb) {
        print_error("out of memory");
    } else if (engine_open(&engine, &options->engine)) {
        interrupt_setup();
        b->options = options;
        b->result.dtype = options->engine.context.dtype;
        b->result.width = options->width;
        b->result.height = options->height;
        b->result.n_runs = options->n_runs;
        b->terminal = terminal_init(false);
        bool measured = measure(b, &engine, rgb, &err);
        terminal_clear(&b->terminal);
        if (interrupt_signal())
            status = EXIT_SIGNAL + interrupt_signal();
        else if (measured)
            status = report(&b->result, options->json);
        else
            print_error("%s", err.message);
    }
    engine_close(&engine);
    free(rgb);
    free(b);
    return status;
}

int command_bench(int argc, char **argv)
{
    static const struct argp_child children[] = {{.argp = &engine_argp}, {0}};
    static const struct argp argp = {.options = option_table, .parser = parse, .doc = doc, .children = children};
    struct bench_options o = {.n_runs = 5, .n_tokens = 256, .width = 1240, .height = 1754};
    options_parse(&argp, argc, argv, &o);
    return run(&o);
}
