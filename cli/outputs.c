#include "outputs.h"

#include "interrupt.h"
#include "pictures.h"
#include "terminal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool cannot_write(const char *path, int error)
{
    print_error("'%s': cannot write: %s", path, strerror(error));
    return false;
}

static bool out_of_memory(void)
{
    print_error("out of memory");
    return false;
}

/* The sinks of the library's writers. */
static bool write_format(void *user, const char *text, size_t n)
{
    struct outputs_format *f = user;
    if (f->stream)
        return output_write(f->stream, text, n);
    errno = 0;
    if (n && fwrite(text, 1, n, f->replacement.file) != n)
        f->error = errno ? errno : EIO;
    return !f->error;
}

/* A failed writer: the sink's reason, if it was the sink. The stream says its own when it is closed. */
static bool writer_failed(const struct outputs *o, const struct outputs_format *f, const struct fathom_err *err)
{
    if (f->stream && f->stream->error)
        return false;
    if (f->error)
        return cannot_write(f->path, f->error);
    print_error("'%s': cannot write %s: %s", o->path, f->path ? f->path : "standard output", err->message);
    return false;
}

static bool open_file(struct outputs *o, struct outputs_format *f)
{
    const struct outputs_plan *plan = o->plan;
    if (o->base ? asprintf(&f->path, "%s%s", o->base, f->format->ending) < 0 : !(f->path = strdup(plan->file)))
        return out_of_memory();
    if (inputs_have(plan->inputs, f->path)) {
        print_error("'%s': is an input file too, and will not be overwritten", f->path);
        return false;
    }
    if (replace_open(&f->replacement, f->path))
        return true;
    if (errno != EINTR)
        print_error("'%s': cannot create: %s", f->path, strerror(errno));
    return false;
}

static bool open_format(struct outputs *o, const struct format *format)
{
    const struct outputs_plan *plan = o->plan;
    struct fathom_err err = {0};
    struct outputs_format *f = &o->formats[o->n++];
    *f = (struct outputs_format){.format = format, .stream = plan->stream};
    f->options = (struct fathom_writer_options){.file = o->path, .model = plan->model, .no_stats = plan->no_stats};
    f->options.figures = o->figures_url;
    if (format->format != FATHOM_JSON_LINES) /* each line would say it again */
        f->options.read = plan->read;
    if (!f->stream && !open_file(o, f))
        return false;
    return fathom_writer_open(format->format, &f->options, write_format, f, &f->writer, &err) == FATHOM_OK ||
           writer_failed(o, f, &err);
}

static bool has_figures(const struct outputs_plan *plan) { return plan->folder && plan->formats & FORMAT_MARKDOWN; }

bool outputs_need_pixels(const struct outputs_plan *plan)
{
    return formats_need_pixels(plan->formats) || plan->overlay || has_figures(plan);
}

/* Names the document's files and makes their folder. */
static bool open_folder(struct outputs *o, const char *name)
{
    const char *folder = o->plan->folder, *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
    if (asprintf(&o->base, "%s%s%s", folder, slash, name) < 0 || asprintf(&o->boxes, "%s.boxes/", o->base) < 0)
        return out_of_memory();
    if (has_figures(o->plan)) {
        const char *last = strrchr(o->base, '/') + 1;
        int n = (int)(last - o->base);
        if (asprintf(&o->figures, "%.*simages/%s/", n, o->base, last) < 0)
            return out_of_memory();
        o->figures_url = o->figures + n;
    }
    return make_folders(o->base);
}

bool outputs_open(struct outputs *o, const struct outputs_plan *plan, const char *name, const char *path)
{
    *o = (struct outputs){.plan = plan, .path = path};
    if (plan->folder && !open_folder(o, name))
        return false;
    for (size_t i = 0; i < N_FORMATS; i++)
        if (plan->formats & 1u << i && !open_format(o, &formats[i]))
            return false;
    return true;
}

bool outputs_page(struct outputs *o, const struct fathom_page *page)
{
    struct fathom_err err = {0};
    for (size_t i = 0; i < o->n; i++)
        if (fathom_writer_page(o->formats[i].writer, page, &err) != FATHOM_OK)
            return writer_failed(o, &o->formats[i], &err);
    if (o->plan->stream && !output_flush(o->plan->stream))
        return false;
    if (!page->rgb)
        return true; /* nothing of a failed page can be drawn */
    return (!o->figures || pictures_write_figures(o->figures, page, o->path)) &&
           (!o->plan->overlay || pictures_write_overlay(o->boxes, page, o->path));
}

static void release(struct outputs *o)
{
    for (size_t i = 0; i < o->n; i++) {
        fathom_writer_discard(o->formats[i].writer);
        if (o->formats[i].replacement.file)
            replace_discard(&o->formats[i].replacement);
        free(o->formats[i].path);
    }
    free(o->base);
    free(o->boxes);
    free(o->figures);
    *o = (struct outputs){0};
}

bool outputs_commit(struct outputs *o)
{
    struct fathom_err err = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < o->n; i++) {
        struct outputs_format *f = &o->formats[i];
        struct fathom_writer *writer = f->writer;
        f->writer = NULL;
        ok = fathom_writer_close(writer, &err) == FATHOM_OK || writer_failed(o, f, &err);
    }
    for (size_t i = 0; ok && i < o->n; i++) {
        struct outputs_format *f = &o->formats[i];
        ok = f->stream ? output_flush(f->stream) : replace_commit(&f->replacement) || cannot_write(f->path, errno);
    }
    release(o);
    return ok;
}

void outputs_discard(struct outputs *o) { release(o); }

static bool exists(const struct outputs_plan *plan, const char *name, const char *ending)
{
    char *path;
    if (asprintf(&path, "%s/%s%s", plan->folder, name, ending) < 0)
        return false;
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

bool outputs_exist(const struct outputs_plan *plan, const char *name)
{
    if (!plan->folder)
        return access(plan->file, F_OK) == 0;
    bool all = !plan->overlay || exists(plan, name, ".boxes");
    for (size_t i = 0; all && i < N_FORMATS; i++)
        all = !(plan->formats & 1u << i) || exists(plan, name, formats[i].ending);
    return all;
}
