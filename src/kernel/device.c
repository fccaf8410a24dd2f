#include "kernel/device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACK_END "libfathom_cuda.so"

/* The back end beside the file that holds this function, in ../lib from it, or where the system looks. It stays loaded:
 * CUDA's own threads and exit handlers live in it. */
static void *load_back_end(char *why, size_t size)
{
    static const char *const places[] = {"/", "/../lib/"};
    Dl_info own;
    char path[4096];
    void *handle = NULL;
    const char *slash =
        dladdr(__extension__(void *) device_open, &own) && own.dli_fname ? strrchr(own.dli_fname, '/') : NULL;
    for (size_t i = 0; i < 2 && slash && !handle; i++)
        if (snprintf(path, sizeof path, "%.*s%s%s", (int)(slash - own.dli_fname), own.dli_fname, places[i], BACK_END) <
            (int)sizeof path)
            handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        handle = dlopen(BACK_END, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *error = dlerror();
        snprintf(why, size, "the GPU back end is not installed: %s", error ? error : BACK_END);
    }
    return handle;
}

static enum fathom_status open_cuda(const struct device_options *options, struct device **out, struct fathom_err *err)
{
    char why[256];
    void *handle = load_back_end(why, sizeof why);
    if (!handle)
        return fail(err, FATHOM_EUNSUPPORTED, "%s", why);
    device_open_fn *open;
    void *symbol = dlsym(handle, DEVICE_ENTRY);
    if (!symbol)
        return fail(err, FATHOM_EUNSUPPORTED, "'%s' is not a back end of this library", BACK_END);
    memcpy(&open, &symbol, sizeof open);
    return open(DEVICE_ABI, options, out, err);
}

/* "cuda" or "cuda:N" */
static bool parse_cuda(const char *spec, int *index)
{
    *index = 0;
    if (strncmp(spec, "cuda", 4) != 0)
        return false;
    if (spec[4] == 0)
        return true;
    const char *digits = spec + 5;
    size_t n = strspn(digits, "0123456789");
    if (spec[4] != ':' || n == 0 || n > 3 || digits[n])
        return false;
    *index = atoi(digits);
    return true;
}

enum fathom_status device_open(const char *spec, bool exact, struct device **out, char why[256], struct fathom_err *err)
{
    struct device_options options = {.exact = exact};

    *out = NULL;
    *why = 0;
    if (!spec || strcmp(spec, "cpu") == 0)
        return FATHOM_OK;
    if (strcmp(spec, "auto") == 0) {
        struct fathom_err reason = {0};
        if (open_cuda(&options, out, &reason))
            snprintf(why, 256, "%.255s", reason.message);
        return FATHOM_OK;
    }
    if (!parse_cuda(spec, &options.index))
        return fail(err, FATHOM_EINVAL, "'%s' is not a device: cpu, cuda, cuda:N or auto", spec);
    return open_cuda(&options, out, err);
}
