/* fathom ocr: pages to text in many forms. */
#include "command.h"
#include "documents.h"
#include "interrupt.h"
#include "live.h"
#include "settings.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How results are written. */
enum way {
    WAY_LIVE,   /* Markdown as it is generated             */
    WAY_STREAM, /* finished pages, one file behind another */
    WAY_FILE,   /* the one document's one file, for a job  */
    WAY_FOLDER, /* files for each document                 */
};

static bool is_one(unsigned set) { return (set & (set - 1)) == 0; }

static bool names_folder(const char *path)
{
    struct stat st;
    size_t n = strlen(path);
    return path[n - 1] == '/' || (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

static enum way choose_way(const struct ocr_options *o, const struct inputs *inputs)
{
    bool many_files = inputs->n > 1 && (o->job || !formats_follow(o->formats));
    if (o->output && (names_folder(o->output) || !is_one(o->formats) || o->overlay || many_files))
        return WAY_FOLDER;
    if (o->job)
        return WAY_FILE;
    return o->formats == FORMAT_MARKDOWN ? WAY_LIVE : WAY_STREAM;
}

/* What the number of files shows to be wrong with the command line. */
static const char *find_mistake(const struct ocr_options *o, const struct inputs *inputs, enum way way)
{
    if (way == WAY_STREAM && inputs->n > 1 && !formats_follow(o->formats))
        return "several files in this format need a folder: -o DIR";
    if (way == WAY_STREAM && !o->output && !formats_are_text(o->formats) && isatty(STDOUT_FILENO))
        return "a PDF is nothing for a terminal: name a file with -o FILE";
    if (way != WAY_LIVE && o->raw)
        return "--raw goes with --format md on standard output or in one FILE";
    if (way != WAY_LIVE && o->locate && o->formats & FORMAT_MARKDOWN)
        return "--task locate writes to standard output or to one FILE; --format json has its boxes, too";
    for (size_t i = 0; o->job && i < inputs->n; i++)
        if (strcmp(inputs->files[i].path, "-") == 0)
            return "--job cannot go on with standard input: name files";
    return NULL;
}

static size_t count_mine(const struct ocr_options *o, const struct inputs *inputs)
{
    size_t n = 0;
    for (size_t i = 0; i < inputs->n; i++)
        n += i % o->n_shards == o->shard;
    return n;
}

/* After an interrupt. */
static void say_what_is_left(const struct session *s, enum way way, size_t n_unread)
{
    const char *output = s->options->output;
    if (n_unread)
        print_error("stopped by %s: %zu file%s left unread", interrupt_name(), n_unread, n_unread == 1 ? "" : "s");
    if (s->options->job)
        print_error("stopped by %s: the same command goes on with '%s'", interrupt_name(), s->options->job);
    else if (output && way != WAY_FOLDER)
        print_error(s->keep ? "'%s' holds the text so far" : "'%s' is left alone: no text was read", output);
}

static size_t read_all(struct session *s, enum way way, struct store *store, const char *model)
{
    const struct ocr_options *o = s->options;
    if (way == WAY_LIVE)
        return live_read(s);
    const char *slash = strrchr(model, '/');
    /* Who reads a pipe need not wait for a document's end. */
    bool lines = way == WAY_STREAM && !o->output && o->formats == FORMAT_JSON;
    const struct outputs_plan plan = {
        .formats = lines ? FORMAT_JSON_LINES : o->formats,
        .overlay = o->overlay,
        .folder = way == WAY_FOLDER ? o->output : NULL,
        .file = o->output,
        .stream = way == WAY_STREAM ? &s->out : NULL,
        .model = slash && slash[1] ? slash + 1 : model,
        .read = &o->read,
        .no_stats = o->job != NULL, /* a job that was stopped gives the same bytes as one that was not */
        .inputs = s->inputs,
    };
    return documents_read(s, store, &plan);
}

static int read_inputs(struct session *s, enum way way, struct store *store, const char *model)
{
    const struct ocr_options *o = s->options;
    bool streams = way == WAY_LIVE || way == WAY_STREAM;
    if (streams && o->output && inputs_have(s->inputs, o->output)) {
        print_error("'%s': is an input file too, and will not be overwritten", o->output);
        return EXIT_FAILED;
    }
    if (streams && !output_open(&s->out, o->output))
        return interrupt_signal() ? EXIT_SIGNAL + interrupt_signal() : EXIT_FAILED;
    report_init(&s->report, count_mine(o, s->inputs), o->read.pages, !streams, o->quiet);
    size_t n_unread = read_all(s, way, store, model);
    bool written = !s->broken && (!streams || output_close(&s->out, s->keep));
    report_summary(&s->report);
    bool failed = report_has_failures(&s->report) || s->inputs->failed;
    report_free(&s->report);
    if (!interrupt_signal())
        return written && !failed ? EXIT_DONE : EXIT_FAILED;
    if (written)
        say_what_is_left(s, way, n_unread);
    return EXIT_SIGNAL + interrupt_signal();
}

static bool open_store(const struct ocr_options *o, const char *model, struct store **store)
{
    struct store_setting settings[MAX_SETTINGS];
    *store = NULL;
    if (!o->job)
        return true;
    size_t n = settings_make(settings, o, model);
    if (n == 0)
        print_error("out of memory");
    bool ok = n && store_open(o->job, settings, n, store) && (!o->retry_failed || store_forget_failed(*store));
    settings_free(settings, n);
    return ok;
}

static int run(const struct ocr_options *o, const struct inputs *inputs, enum way way)
{
    struct session session = {.options = o, .inputs = inputs};
    struct engine engine = {0};
    struct store *store = NULL;
    int status = EXIT_FAILED;
    if (engine_open(&engine, &o->engine)) {
        interrupt_setup();
        session.context = engine.context;
        if (open_store(o, engine.path, &store))
            status = read_inputs(&session, way, store, engine.path);
    }
    store_close(store);
    engine_close(&engine);
    return status;
}

static void list_inputs(const struct ocr_options *o, struct inputs *inputs)
{
    for (size_t i = 0; i < o->n_files; i++)
        inputs_add(inputs, o->files[i], o->output);
    if (o->files_from)
        inputs_add_list(inputs, o->files_from, o->output);
}

int command_ocr(int argc, char **argv)
{
    struct ocr_options options;
    struct inputs inputs = {0};
    ocr_options_parse(&options, argc, argv);
    list_inputs(&options, &inputs);
    enum way way = choose_way(&options, &inputs);
    const char *mistake = find_mistake(&options, &inputs, way);
    int status = EXIT_FAILED;
    if (mistake) {
        print_error("%s", mistake);
        status = EXIT_USAGE;
    } else if (inputs.n) {
        status = run(&options, &inputs, way);
    }
    inputs_free(&inputs);
    ocr_options_free(&options);
    return status;
}
