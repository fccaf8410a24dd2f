#include "ocr_options.h"

#include "formats.h"
#include "ocr_values.h"
#include "password.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

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
    KEY_NO_RETRY,
    KEY_MODE,
    KEY_MAX_TILES,
    KEY_MAX_PIXELS,
    KEY_PAGES,
    KEY_DPI,
    KEY_ALPHA,
    KEY_ICC,
    KEY_PASSWORD,
    KEY_PASSWORD_FILE,
    KEY_FILES_FROM,
    KEY_TEXT_LAYER,
    KEY_OVERLAY,
    KEY_STATS,
    KEY_JOB,
    KEY_RETRY_FAILED,
    KEY_SHARD,
};

static const struct argp_option options[] = {
    {.doc = "What to read:", .group = 1},
    {.name = "pages", .key = KEY_PAGES, .arg = "LIST", .doc = "Of each document, such as 1-3,7,10- (default: all)"},
    {.name = "files-from",
     .key = KEY_FILES_FROM,
     .arg = "FILE",
     .doc = "Also read what FILE lists, one name a line or NUL-separated; - is standard input"},
    {.name = "task",
     .key = KEY_TASK,
     .arg = "TASK",
     .doc = "markdown (with layout), text (plain reading), figure (parse a chart or drawing), describe, or locate:TEXT "
            "(where TEXT stands: one line a box, x0 y0 x1 y1 TEXT) (default: markdown)"},
    {.name = "prompt",
     .key = KEY_PROMPT,
     .arg = "TEXT",
     .doc = "Ask this instead; the picture goes where <image> stands, else in front"},
    {.name = "password", .key = KEY_PASSWORD, .arg = "TEXT", .doc = "Of encrypted documents; others may see it here"},
    {.name = "password-file",
     .key = KEY_PASSWORD_FILE,
     .arg = "FILE",
     .doc = "The first line of FILE is the password (default: $FATHOM_PASSWORD, else asked for on a terminal)"},

    {.doc = "How to see it:", .group = 2},
    {.name = "mode",
     .key = KEY_MODE,
     .arg = "MODE",
     .doc = "tiny, small, base, large or gundam (default: what the model folder says, else gundam: tiles and a view of "
            "the whole page)"},
    {.name = "max-tiles",
     .key = KEY_MAX_TILES,
     .arg = "N",
     .doc = "Tiles of gundam; 0: as many as the model was published with (default: 0)"},
    {.name = "max-pixels",
     .key = KEY_MAX_PIXELS,
     .arg = "N",
     .doc = "A page with more is an error; 0: 178956970 (default: 0)"},
    {.name = "dpi",
     .key = KEY_DPI,
     .arg = "N",
     .doc = "Resolution of pages that have no pixels of their own (default: 144)"},
    {.name = "alpha",
     .key = KEY_ALPHA,
     .arg = "white|drop",
     .doc = "Transparent pictures: put on white, or alpha ignored as the reference does (default: white)"},
    {.name = "icc",
     .key = KEY_ICC,
     .arg = "on|off",
     .doc = "Colour profiles: applied, or ignored as the reference does (default: on)"},

    {.doc = "What to write:", .group = 3},
    {.name = "format",
     .key = KEY_FORMAT,
     .arg = "LIST",
     .doc =
         "Some of md (Markdown), json (blocks with boxes; an object a document, but on standard output one a page and "
         "line), jsonl (an object a page and line), html, txt, hocr, alto and pdf (searchable), such as md,pdf "
         "(default: md)"},
    {.name = "output",
     .key = KEY_OUTPUT,
     .arg = "FILE|DIR",
     .doc =
         "Write to FILE, which is replaced when the last page is read, or to files in DIR, named after what was read; "
         "- is standard output (default: -)"},
    {.name = "overlay", .key = KEY_OVERLAY, .doc = "Also draw the pages with their boxes, in DIR"},
    {.name = "raw", .key = KEY_RAW, .doc = "Markdown with the model's layout tags kept"},
    {.name = "no-header", .key = KEY_NO_HEADER, .doc = "No <!-- FILE --> line before each of several files"},
    {.name = "with-text-layer",
     .key = KEY_TEXT_LAYER,
     .doc = "JSON: also the text that a document carries itself; it is never used to read"},
    {.name = "stats", .key = KEY_STATS, .doc = "Times, rates and memory of each page as a JSON line on standard error"},
    {.name = "quiet", .key = KEY_QUIET, .doc = "No progress, timings and summary"},

    {.doc = "Many documents:", .group = 4},
    {.name = "job",
     .key = KEY_JOB,
     .arg = "FILE",
     .doc = "Keep every page that is read in FILE, so that the same command goes on where it was stopped or killed; "
            "needs -o"},
    {.name = "retry-failed", .key = KEY_RETRY_FAILED, .doc = "Read the pages of the job that failed once more"},
    {.name = "shard",
     .key = KEY_SHARD,
     .arg = "I/N",
     .doc = "Read only every N-th document, from the I-th on; each of N processes needs a job file of its own"},

    {.doc = "How to generate:", .group = 5},
    {.name = "max-tokens",
     .key = KEY_MAX_TOKENS,
     .arg = "N",
     .doc = "Stop a page after N tokens; 0: when the context is full (default: 0)"},
    {.name = "no-repeat-ngram",
     .key = KEY_NGRAM,
     .arg = "N[:W]|off",
     .doc = "Never repeat N tokens that began within the last W (default: 20:90)"},
    {.name = "no-retry", .key = KEY_NO_RETRY, .doc = "A page that loops or has no end is not read in other ways"},
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
    "  fathom --format pdf -o new.pdf scan.png  the same page, searchable\n"
    "  fathom --format md,json -o out/ scans/   a folder, each document in two formats\n"
    "  fathom --job night.job -o out/ scans/    goes on where it was killed\n"
    "  fathom --task text receipt.jpg           plain reading, no layout\n"
    "  fathom --format json page.png            blocks with boxes, one line a page\n"
    "  fathom --task locate:Total invoice.png   where a word stands\n"
    "  fathom -m DeepSeek-OCR-2 page.png        with weights that you downloaded\n"
    "\v"
    "FILE is a picture or document, a folder of them (with those below it; hidden ones are passed over), a pattern in "
    "quotes, or - for standard input. Without -m and FATHOM_MODEL the built-in miniature model reads; it lies in "
    "../share/fathom/models/mini or ../../models/mini as seen from the program.\n"
    "\n"
    "Exit status: 0 if every page was read, 1 if a file or page failed (the others are read all the same), 2 for a "
    "wrong command line, 130 after Ctrl-C, 143 after a termination signal.";

static const char *const modes[] = {
    [FATHOM_MODE_DEFAULT] = "default",
    [FATHOM_MODE_TINY] = "tiny",
    [FATHOM_MODE_SMALL] = "small",
    [FATHOM_MODE_BASE] = "base",
    [FATHOM_MODE_LARGE] = "large",
    [FATHOM_MODE_GUNDAM] = "gundam",
    NULL,
};

const char *ocr_mode_name(enum fathom_mode mode) { return modes[mode]; }

/* Whether the options agree. */
static void check(struct argp_state *state, struct ocr_options *o)
{
    bool one_format = (o->formats & (o->formats - 1)) == 0;
    if (o->task && o->own_prompt)
        argp_error(state, "--task and --prompt exclude each other");
    if (o->n_files == 0 && !o->files_from)
        argp_error(state, "no FILE to read");
    if (!o->output && (!one_format || o->overlay))
        argp_error(state, "%s a folder: -o DIR", one_format ? "--overlay needs" : "several formats need");
    if (o->job && !o->output)
        argp_error(state, "--job needs -o");
    if (o->retry_failed && !o->job)
        argp_error(state, "--retry-failed needs --job");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    static const char *const icc[] = {"on", "off", NULL};
    static const char *const alphas[] = {[FATHOM_ALPHA_WHITE] = "white", [FATHOM_ALPHA_DROP] = "drop", NULL};
    struct ocr_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &o->engine; return 0;
    case KEY_PAGES: ocr_set_pages(state, o, arg); return 0;
    case KEY_FILES_FROM: o->files_from = option_name(state, "--files-from", arg, "a file"); return 0;
    case KEY_TASK: ocr_set_task(state, o, arg); return 0;
    case KEY_PROMPT: ocr_set_prompt(state, o, arg); return 0;
    case KEY_PASSWORD: ocr_set_password(state, o, arg); return 0;
    case KEY_PASSWORD_FILE: ocr_set_password_file(state, o, arg); return 0;
    case KEY_MODE: o->read.mode = (enum fathom_mode)(1 + option_choice(state, "--mode", arg, modes + 1)); return 0;
    case KEY_MAX_TILES: o->read.max_tiles = (int)option_integer(state, "--max-tiles", arg, 0, 1000); return 0;
    case KEY_MAX_PIXELS:
        o->read.max_pixels = (size_t)option_integer(state, "--max-pixels", arg, 0, INT64_C(1) << 40);
        return 0;
    case KEY_DPI: o->read.dpi = (double)option_float(state, "--dpi", arg, 1, 2400); return 0;
    case KEY_ALPHA: o->read.alpha = (enum fathom_alpha)option_choice(state, "--alpha", arg, alphas); return 0;
    case KEY_ICC: o->read.ignore_icc = option_choice(state, "--icc", arg, icc) == 1; return 0;
    case KEY_FORMAT: ocr_set_formats(state, o, arg); return 0;
    case KEY_OVERLAY: o->overlay = true; return 0;
    case KEY_TEXT_LAYER: o->read.text_layer = true; return 0;
    case KEY_JOB: o->job = option_name(state, "--job", arg, "a file"); return 0;
    case KEY_RETRY_FAILED: o->retry_failed = true; return 0;
    case KEY_SHARD: ocr_set_shard(state, o, arg); return 0;
    case KEY_NO_RETRY: o->read.no_retry = true; return 0;
    case KEY_RAW: o->raw = true; return 0;
    case KEY_OUTPUT: o->output = strcmp(arg, "-") == 0 ? NULL : option_name(state, "--output", arg, "a file"); return 0;
    case KEY_NO_HEADER: o->no_header = true; return 0;
    case KEY_STATS: o->stats = true; return 0;
    case KEY_QUIET: o->quiet = true; return 0;
    case KEY_MAX_TOKENS: o->read.max_tokens = (int)option_integer(state, "--max-tokens", arg, 0, INT_MAX); return 0;
    case KEY_NGRAM: ocr_set_guard(state, &o->read, arg); return 0;
    case KEY_TEMPERATURE: o->read.temperature = option_float(state, "--temperature", arg, 0, 100); return 0;
    case KEY_TOP_P: o->read.top_p = option_float(state, "--top-p", arg, 0, 1); return 0;
    case KEY_SEED: o->read.seed = option_unsigned(state, "--seed", arg); return 0;
    case ARGP_KEY_ARGS:
        o->files = state->argv + state->next;
        o->n_files = (size_t)(state->argc - state->next);
        return 0;
    case ARGP_KEY_END: check(state, o); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

void ocr_options_parse(struct ocr_options *o, int argc, char **argv)
{
    static const struct argp_child children[] = {{.argp = &engine_argp}, {0}};
    static const struct argp argp = {
        .options = options, .parser = parse, .args_doc = "FILE...", .doc = doc, .children = children};
    *o = (struct ocr_options){.read = fathom_read_defaults(), .formats = FORMAT_MARKDOWN, .n_shards = 1};
    options_parse(&argp, argc, argv, o);
    if (o->prompt)
        o->read.prompt = o->prompt;
    const char *password = getenv("FATHOM_PASSWORD");
    o->read.password = o->password ? o->password : password && *password ? password : NULL;
}

void ocr_options_free(struct ocr_options *o)
{
    free(o->prompt);
    password_free(o->password);
    *o = (struct ocr_options){0};
}
