#include "ocr_values.h"

#include "command.h"
#include "formats.h"
#include "page_set.h"
#include "password.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMAGE "<image>"

static void set_prompt(struct argp_state *state, struct ocr_options *o, const char *before, const char *text,
                       const char *after)
{
    free(o->prompt);
    if (asprintf(&o->prompt, "%s%s%s", before, text, after) < 0) {
        o->prompt = NULL;
        argp_failure(state, EXIT_FAILED, 0, "out of memory");
    }
}

void ocr_set_task(struct argp_state *state, struct ocr_options *o, const char *task)
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

void ocr_set_prompt(struct argp_state *state, struct ocr_options *o, const char *prompt)
{
    const char *image = strstr(prompt, IMAGE);
    o->own_prompt = true;
    if (image && strstr(image + 1, IMAGE))
        argp_error(state, "--prompt may name <image> once only");
    set_prompt(state, o, image ? "" : IMAGE "\n", prompt, "");
}

/* N[:W]|off */
void ocr_set_guard(struct argp_state *state, struct fathom_read_options *read, const char *arg)
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

void ocr_set_formats(struct argp_state *state, struct ocr_options *o, const char *arg)
{
    o->formats = formats_parse(arg);
    if (!o->formats)
        argp_error(state, "--format must be some of %s, such as md,json, not '%s'", formats_names(), arg);
}

void ocr_set_pages(struct argp_state *state, struct ocr_options *o, const char *arg)
{
    if (!page_set_is_valid(arg))
        argp_error(state, "--pages must be like 1-3,7,10-, not '%s'", arg);
    o->read.pages = arg;
}

void ocr_set_shard(struct argp_state *state, struct ocr_options *o, const char *arg)
{
    char number[24];
    size_t n = strcspn(arg, "/");
    if (n >= sizeof number || arg[n] != '/')
        argp_error(state, "--shard must be I/N, not '%s'", arg);
    snprintf(number, sizeof number, "%.*s", (int)n, arg);
    o->n_shards = (size_t)option_integer(state, "--shard's N", arg + n + 1, 1, 1000000);
    o->shard = (size_t)option_integer(state, "--shard's I", number, 1, (int64_t)o->n_shards) - 1;
}

void ocr_set_password(struct argp_state *state, struct ocr_options *o, const char *password)
{
    password_free(o->password);
    if (!(o->password = strdup(password)))
        argp_failure(state, EXIT_FAILED, 0, "out of memory");
}

void ocr_set_password_file(struct argp_state *state, struct ocr_options *o, const char *path)
{
    char line[1024];
    FILE *file = fopen(path, "re");
    bool read = file && fgets(line, sizeof line, file);
    if (!read)
        argp_failure(state, EXIT_FAILED, file ? 0 : errno, "--password-file: cannot read '%s'", path);
    if (file)
        fclose(file);
    if (read) {
        line[strcspn(line, "\r\n")] = '\0';
        ocr_set_password(state, o, line);
        explicit_bzero(line, sizeof line);
    }
}
