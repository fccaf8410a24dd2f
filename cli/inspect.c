/* fathom inspect: what a model folder holds and needs. */
#include "command.h"
#include "model_path.h"
#include "options.h"
#include "output.h"
#include "terminal.h"

#include <stdlib.h>

struct inspect_options {
    const char *model;
    bool json;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct inspect_options *o = state->input;
    switch (key) {
    case 'm': o->model = option_name(state, "--model", arg, "a folder"); return 0;
    case 'j': o->json = true; return 0;
    case ARGP_KEY_ARG:
        if (o->model)
            argp_error(state, "one MODEL at a time, not '%s' as well", arg);
        o->model = option_name(state, "MODEL", arg, "a folder");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static bool write_account(void *user, const char *text, size_t n) { return output_write(user, text, n); }

static int inspect(const char *path, const char *source, bool json)
{
    struct fathom_model *model = NULL;
    struct fathom_err err = {0};
    struct output out;
    if (fathom_model_open(path, &model, &err) != FATHOM_OK) {
        print_model_error(path, source, &err);
        return EXIT_FAILED;
    }
    bool ok = output_open(&out, NULL);
    if (ok && fathom_model_inspect(model, json, write_account, &out, &err) != FATHOM_OK && !out.error) {
        print_model_error(path, source, &err);
        ok = false;
    }
    fathom_model_close(model);
    return output_close(&out, true) && ok ? EXIT_DONE : EXIT_FAILED;
}

int command_inspect(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {.name = "json", .key = 'j', .doc = "One JSON object instead of text"},
        {.name = "model", .key = 'm', .arg = "DIR", .doc = "The same as MODEL"},
        {0},
    };
    static const char doc[] =
        "Prints the kind, the sizes, the memory and the tensors of a model folder, after the checks "
        "that every command makes before it trusts one.\n"
        "\n"
        "  fathom inspect                    the built-in model\n"
        "  fathom inspect DeepSeek-OCR-2     weights that you downloaded\n"
        "  fathom inspect --json | python3 -m json.tool\n"
        "\v"
        "Without MODEL: $FATHOM_MODEL, else the built-in model.";
    static const struct argp argp = {.options = options, .parser = parse, .args_doc = "[MODEL]", .doc = doc};
    struct inspect_options o = {0};
    options_parse(&argp, argc, argv, &o);
    const char *source;
    char *path = model_path(o.model, &source);
    int status = path ? inspect(path, source, o.json) : EXIT_FAILED;
    free(path);
    return status;
}
