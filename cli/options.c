#include "options.h"

#include "command.h"
#include "model_path.h"
#include "terminal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_version(FILE *stream, struct argp_state *state)
{
    (void)state;
    fprintf(stream, "fathom %s\n", fathom_version());
}

void options_parse(const struct argp *argp, int argc, char **argv, void *input)
{
    argp_program_version_hook = print_version;
    argp_err_exit_status = EXIT_USAGE;
    setenv("ARGP_HELP_FMT", "no-dup-args-note", 0); /* there is no other way to leave argp's note out */
    error_t error = argp_parse(argp, argc, argv, 0, NULL, input);
    if (error) {
        print_error("%s", strerror(error));
        exit(EXIT_FAILED);
    }
}

int64_t option_integer(struct argp_state *state, const char *option, const char *s, int64_t low, int64_t high)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(s, &end, 10);
    if (*s < '0' || *s > '9' || *end || errno || value < low || value > high)
        argp_error(state, "%s must be a whole number from %" PRId64 " to %" PRId64 ", not '%s'", option, low, high, s);
    return value;
}

uint64_t option_unsigned(struct argp_state *state, const char *option, const char *s)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(s, &end, 10);
    if (*s < '0' || *s > '9' || *end || errno)
        argp_error(state, "%s must be a whole number from 0 to %" PRIu64 ", not '%s'", option, UINT64_MAX, s);
    return value;
}

float option_float(struct argp_state *state, const char *option, const char *s, float low, float high)
{
    char *end = NULL;
    errno = 0;
    float value = strtof(s, &end);
    /* strtof also takes leading space, hexadecimal numbers, "inf" and "nan". */
    if (!*s || s[strspn(s, "0123456789.eE+-")] || *end || !isfinite(value) || value < low || value > high)
        argp_error(state, "%s must be a number from %g to %g, not '%s'", option, (double)low, (double)high, s);
    return value;
}

int option_choice(struct argp_state *state, const char *option, const char *s, const char *const *names)
{
    char list[200] = "";
    for (int i = 0; names[i]; i++) {
        if (strcmp(s, names[i]) == 0)
            return i;
        size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", i == 0 ? "" : names[i + 1] ? ", " : " or ", names[i]);
    }
    argp_error(state, "%s must be %s, not '%s'", option, list, s);
    return 0;
}

const char *option_name(struct argp_state *state, const char *option, const char *s, const char *what)
{
    if (!*s)
        argp_error(state, "%s needs the name of %s", option, what);
    return s;
}

enum { KEY_THREADS = 't', KEY_MODEL = 'm', KEY_DTYPE = 0x100, KEY_ISA, KEY_DEVICE, KEY_EXACT };

static const struct argp_option engine_options[] = {
    {.doc = "Model and machine:", .group = 10},
    {.name = "model",
     .key = KEY_MODEL,
     .arg = "DIR",
     .doc = "Model folder (default: $FATHOM_MODEL, else the built-in model)"},
    {.name = "threads",
     .key = KEY_THREADS,
     .arg = "N",
     .doc = "Threads; 0 takes every processor there is (default: 0)"},
    {.name = "dtype",
     .key = KEY_DTYPE,
     .arg = "f32|bf16",
     .doc = "Activations: exact, or rounded where the reference rounds (default: f32)"},
    {.name = "isa",
     .key = KEY_ISA,
     .arg = "ref|avx2|avx512",
     .doc = "Instruction set (default: the best that the processor has)"},
    {.name = "device",
     .key = KEY_DEVICE,
     .arg = "cpu|cuda[:N]|auto",
     .doc = "Run on the processor, on a GPU, or on a GPU when there is one (default: cpu)"},
    {.name = "exact", .key = KEY_EXACT, .doc = "On a GPU: the same bytes as on the processor, slower"},
    {0},
};

static error_t parse_engine(int key, char *arg, struct argp_state *state)
{
    static const char *const dtypes[] = {[FATHOM_F32] = "f32", [FATHOM_BF16] = "bf16", NULL};
    static const char *const isas[] = {"ref", "avx2", "avx512", NULL};
    struct engine_options *options = state->input;
    switch (key) {
    case KEY_MODEL: options->model = option_name(state, "--model", arg, "a folder"); return 0;
    case KEY_THREADS: options->context.n_threads = (int)option_integer(state, "--threads", arg, 0, 1024); return 0;
    case KEY_DTYPE: options->context.dtype = (enum fathom_dtype)option_choice(state, "--dtype", arg, dtypes); return 0;
    case KEY_DEVICE: options->context.device = option_name(state, "--device", arg, "a device"); return 0;
    case KEY_EXACT: options->context.exact = true; return 0;
    case KEY_ISA: options->context.isa = isas[option_choice(state, "--isa", arg, isas)]; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

const struct argp engine_argp = {.options = engine_options, .parser = parse_engine};

bool engine_open(struct engine *engine, const struct engine_options *options)
{
    *engine = (struct engine){0};
    const char *source;
    engine->path = model_path(options->model, &source);
    if (!engine->path)
        return false;
    struct fathom_err err = {0};
    bool ok = fathom_model_open(engine->path, &engine->model, &err) == FATHOM_OK &&
              fathom_context_create(engine->model, &options->context, &engine->context, &err) == FATHOM_OK;
    if (!ok) {
        print_model_error(engine->path, source, &err);
        engine_close(engine);
        return false;
    }
    const char *why;
    fathom_context_device(engine->context, &why);
    if (why)
        print_error("reading on the processor: %s", why);
    return true;
}

void engine_close(struct engine *engine)
{
    fathom_context_destroy(engine->context);
    fathom_model_close(engine->model);
    free(engine->path);
    *engine = (struct engine){0};
}
