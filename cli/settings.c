#include "settings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct list {
    struct store_setting *settings;
    size_t n;
    bool failed;
};

static void add(struct list *list, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void add(struct list *list, const char *name, const char *format, ...)
{
    va_list args;
    struct store_setting *setting = &list->settings[list->n];
    va_start(args, format);
    if (vasprintf(&setting->value, format, args) < 0)
        list->failed = true;
    else
        list->n++;
    va_end(args);
    setting->name = name;
}

size_t settings_make(struct store_setting settings[MAX_SETTINGS], const struct ocr_options *o, const char *model)
{
    const struct fathom_read_options *r = &o->read;
    struct list list = {.settings = settings};
    char *resolved = realpath(model, NULL);
    add(&list, "--model", "%s", resolved ? resolved : model);
    free(resolved);
    add(&list, "--dtype", "%s", o->engine.context.dtype == FATHOM_BF16 ? "bf16" : "f32");
    add(&list, "--prompt", "%s", r->prompt ? r->prompt : "");
    add(&list, "--max-tokens", "%d", r->max_tokens);
    add(&list, "--no-repeat-ngram", "%d:%d", r->ngram, r->ngram_window);
    add(&list, "--temperature", "%.9g", (double)r->temperature);
    add(&list, "--top-p", "%.9g", (double)r->top_p);
    add(&list, "--seed", "%llu", (unsigned long long)r->seed);
    add(&list, "--mode", "%s", ocr_mode_name(r->mode));
    add(&list, "--max-tiles", "%d", r->max_tiles);
    add(&list, "--max-pixels", "%zu", r->max_pixels);
    add(&list, "--no-retry", "%s", r->no_retry ? "yes" : "no");
    add(&list, "--pages", "%s", r->pages ? r->pages : "");
    add(&list, "--dpi", "%.9g", r->dpi);
    add(&list, "--alpha", "%s", r->alpha == FATHOM_ALPHA_DROP ? "drop" : "white");
    add(&list, "--icc", "%s", r->ignore_icc ? "off" : "on");
    add(&list, "--with-text-layer", "%s", r->text_layer ? "yes" : "no");
    if (!list.failed)
        return list.n;
    settings_free(settings, list.n);
    return 0;
}

void settings_free(struct store_setting settings[MAX_SETTINGS], size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(settings[i].value);
}
