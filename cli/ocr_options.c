#include "ocr_options.h"

#include "command.h"
#include "terminal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMAGE "<image>"

enum {
    KEY_OUTPUT = 'o',
    KEY_QUIET = 'q',
    KEY_FORMAT = 0x200,
    KEY_RAW,
    KEY_NO_HEADER,
    KEY_TASK,
    KEY_PROMPT,
    KEY_MAX_TOKENS,
    KEY_NGRAM,
    KEY_TEMPERATURE,
    KEY_TOP_P,
    KEY_SEED,
    KEY_ALPHA,
    KEY_STATS,
};

static const struct argp_option options[] = {
    {.doc = "What to read:", .group = 1},
    {.name = "task",
     .key = KEY_TASK,
     .arg = "TASK",
     .doc = "markdown (with layout), text (plain reading), figure (parse a chart or drawing), describe, or locate:TEXT "
            "(where TEXT stands: one line a box, x0 y0 x1 y1 TEXT) (default: markdown)"},
    {.name = "prompt",
     .key = KEY_PROMPT,
     .arg = "TEXT",
     .doc = "Ask this instead; the picture goes where <image> stands, else in front"},
    {.name = "alpha",
     .key = KEY_ALPHA,
     .arg = "white|drop",
     .doc = "Transparent pictures: put on white, or alpha ignored as the reference does (default: white)"},

    {.doc = "What to write:", .group = 2},
    {.name = "format",
     .key = KEY_FORMAT,
     .arg = "md|json",
     .doc = "Markdown, or one JSON object a page and line, with boxes in pixels (default: md)"},
    {.name = "raw", .key = KEY_RAW, .doc = "Markdown with the model's layout tags kept"},
    {.name = "output",
     .key = KEY_OUTPUT,
     .arg = "FILE",
     .doc = "Write to FILE, which is replaced when the last page is read; - is standard output (default: -)"},
    {.name = "no-header", .key = KEY_NO_HEADER, .doc = "No <!-- FILE --> line before each of several files"},
    {.name = "stats", .key = KEY_STATS, .doc = "Times, rates and memory of each page as a JSON line on standard error"},
    {.name = "quiet", .key = KEY_QUIET, .doc = "No progress and timings on the terminal"},

    {.doc = "How to generate:", .group = 3},
    {.name = "max-tokens",
     .key = KEY_MAX_TOKENS,
     .arg = "N",
     .doc = "Stop a page after N tokens; 0: when the context is full (default: 0)"},
    {.name = "no-repeat-ngram",
     .key = KEY_NGRAM,
     .arg = "N[:W]|off",
     .doc = "Never repeat N tokens that began within the last W (default: 20:90)"},
    {.name = "temperature",
     .key = KEY_TEMPERATURE,
     .arg = "T",
     .doc = "Sample; 0 takes the likeliest token (default: 0)"},
    {.name = "top-p",
     .key = KEY_TOP_P,
     .arg = "P",
     .doc = "Sample from the likeliest tokens that make up P of the probability (default: 1)"},
    {.name = "seed", .key = KEY_SEED, .arg = "N", .doc = "Of the sampling (default: 0)"},
    {0},
};

static const char doc[] =
    "Reads pages and prints them as Markdown, as it is generated.\n"
    "\n"
    "  fathom page.png                          Markdown on the terminal\n"
    "  fathom *.png > pages.md                  many pages, one document\n"
    "  fathom --task text receipt.jpg           plain reading, no layout\n"
    "  fathom --format json page.png            blocks with boxes, one line a page\n"
    "  fathom --task locate:Total invoice.png   where a word stands\n"
    "  fathom -m DeepSeek-OCR-2 page.png        with weights that you downloaded\n"
    "\v"
    "FILE is a PNG, JPEG or PPM picture. Without -m and FATHOM_MODEL the built-in miniature model reads; it lies in "
    "../share/fathom/models/mini or ../../models/mini as seen from the program.\n"
    "\n"
    "Exit status: 0 if every page was read, 1 if a file or page failed (the others are read all the same), 2 for a "
    "wrong command line, 130 after Ctrl-C, 143 after a termination signal.";

static void set_prompt(struct argp_state *state, struct ocr_options *o, const char *before, const char *text,
                       const char *after)
{
    free(o->prompt);
    if (asprintf(&o->prompt, "%s%s%s", before, text, after) < 0) {
        o->prompt = NULL;
        argp_failure(state, EXIT_FAILED, 0, "out of memory");
    }
}

static void set_task(struct argp_state *state, struct ocr_options *o, const char *task)
{
    static const struct {
        const char *name, *prompt;
    } tasks[] = {
        {"markdown", IMAGE "\n<|grounding|>Convert the document to markdown."},
        {"text", IMAGE "\nFree OCR."},
        {"figure", IMAGE "\nParse the figure."},
        {"describe", IMAGE "\nDescribe this image in detail."},
    };
    static const char locate[] = "locate:";
    o->task = true;
    o->locate = strncmp(task, locate, strlen(locate)) == 0;
    if (o->locate) {
        const char *text = task + strlen(locate);
        if (!*text || strstr(text, IMAGE) || strstr(text, "<|"))
            argp_error(state, "--task locate:TEXT needs a TEXT without tags, not '%s'", text);
        set_prompt(state, o, IMAGE "\nLocate <|ref|>", text, "<|/ref|> in the image.");
        return;
    }
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
        if (strcmp(task, tasks[i].name) == 0) {
            set_prompt(state, o, "", tasks[i].prompt, "");
            return;
        }
    argp_error(state, "--task must be markdown, text, figure, describe or locate:TEXT, not '%s'", task);
}

static void set_own_prompt(struct argp_state *state, struct ocr_options *o, const char *prompt)
{
    const char *image = strstr(prompt, IMAGE);
    if (image && strstr(image + 1, IMAGE))
        argp_error(state, "--prompt may name <image> once only");
    set_prompt(state, o, image ? "" : IMAGE "\n", prompt, "");
}

/* N[:W]|off */
static void set_guard(struct argp_state *state, struct fathom_read_options *read, const char *arg)
{
    static const char option[] = "--no-repeat-ngram";
    if (strcmp(arg, "off") == 0) {
        read->ngram = 0;
        return;
    }
    char n[24];
    size_t length = strcspn(arg, ":");
    if (length >= sizeof n)
        argp_error(state, "%s must be N, N:W or off, not '%s'", option, arg);
    snprintf(n, sizeof n, "%.*s", (int)length, arg);
    read->ngram = (int)option_integer(state, option, n, 1, 1000);
    if (arg[length] == ':')
        read->ngram_window = (int)option_integer(state, option, arg + length + 1, 1, 1000000);
    if (read->ngram_window < read->ngram)
        argp_error(state, "%s: a window of %d cannot hold %d tokens", option, read->ngram_window, read->ngram);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    static const char *const formats[] = {"md", "json", NULL};
    static const char *const alphas[] = {[FATHOM_ALPHA_WHITE] = "white", [FATHOM_ALPHA_DROP] = "drop", NULL};
    struct ocr_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &o->engine; return 0;
    case KEY_TASK: set_task(state, o, arg); return 0;
    case KEY_PROMPT:
        set_own_prompt(state, o, arg);
        o->own_prompt = true;
        return 0;
    case KEY_ALPHA: o->read.alpha = (enum fathom_alpha)option_choice(state, "--alpha", arg, alphas); return 0;
    case KEY_FORMAT: o->json = option_choice(state, "--format", arg, formats) == 1; return 0;
    case KEY_RAW: o->raw = true; return 0;
    case KEY_OUTPUT: o->output = strcmp(arg, "-") == 0 ? NULL : option_name(state, "--output", arg, "a file"); return 0;
    case KEY_NO_HEADER: o->no_header = true; return 0;
    case KEY_STATS: o->stats = true; return 0;
    case KEY_QUIET: o->quiet = true; return 0;
    case KEY_MAX_TOKENS: o->read.max_tokens = (int)option_integer(state, "--max-tokens", arg, 0, INT_MAX); return 0;
    case KEY_NGRAM: set_guard(state, &o->read, arg); return 0;
    case KEY_TEMPERATURE: o->read.temperature = option_float(state, "--temperature", arg, 0, 100); return 0;
    case KEY_TOP_P: o->read.top_p = option_float(state, "--top-p", arg, 0, 1); return 0;
    case KEY_SEED: o->read.seed = option_unsigned(state, "--seed", arg); return 0;
    case ARGP_KEY_ARGS:
        o->files = state->argv + state->next;
        o->n_files = (size_t)(state->argc - state->next);
        return 0;
    case ARGP_KEY_NO_ARGS: argp_error(state, "no FILE to read"); return 0;
    case ARGP_KEY_END:
        if (o->task && o->own_prompt)
            argp_error(state, "--task and --prompt exclude each other");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

void ocr_options_parse(struct ocr_options *o, int argc, char **argv)
{
    static const struct argp_child children[] = {{.argp = &engine_argp}, {0}};
    static const struct argp argp = {
        .options = options, .parser = parse, .args_doc = "FILE...", .doc = doc, .children = children};
    *o = (struct ocr_options){.read = fathom_read_defaults()};
    options_parse(&argp, argc, argv, o);
    if (o->prompt)
        o->read.prompt = o->prompt;
}

void ocr_options_free(struct ocr_options *o)
{
    free(o->prompt);
    *o = (struct ocr_options){0};
}
