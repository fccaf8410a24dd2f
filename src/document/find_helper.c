#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "document/decoder.h"

#define PROGRAM "fathom-helper"

/* The folder of a path, cut off in place; false when there is none. */
static bool cut_to_folder(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = 0;
    return slash;
}

/* The first that can be run of folder/inner[i]/PROGRAM. */
static bool try_folders(const char *folder, const char *const *inner, char **out)
{
    for (; *inner; inner++) {
        if (asprintf(out, "%s/%s/" PROGRAM, folder, *inner) < 0) {
            *out = NULL;
            return false;
        }
        if (access(*out, X_OK) == 0)
            return true;
        free(*out);
        *out = NULL;
    }
    return false;
}

/* An installed tree may be moved as a whole, so its own place is asked before the place that it was configured for. */
static bool find_near(char **out)
{
    static const char *const near_program[] = {".", FATHOM_BIN_TO_LIBEXEC, NULL};
    static const char *const near_library[] = {FATHOM_LIB_TO_LIBEXEC, "../bin", NULL};
    static const char *const absolute[] = {"", NULL};
    char program[4096];
    Dl_info info;
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = 0;
    if (cut_to_folder(program) && try_folders(program, near_program, out))
        return true;
    if (dladdr((void *)find_near, &info) && info.dli_fname) {
        char *library = realpath(info.dli_fname, NULL);
        bool found = library && cut_to_folder(library) && try_folders(library, near_library, out);
        free(library);
        if (found)
            return true;
    }
    return try_folders(FATHOM_LIBEXEC_DIR, absolute, out);
}

enum fathom_status helper_find(char **out, struct fathom_err *err)
{
    const char *chosen = secure_getenv("FATHOM_HELPER");
    *out = NULL;
    if (chosen && *chosen) {
        if (access(chosen, X_OK) != 0)
            return fail(err, FATHOM_EUNSUPPORTED, "FATHOM_HELPER names '%s', which is not a program", chosen);
        *out = strdup(chosen);
        return *out ? FATHOM_OK : fail_nomem(err, strlen(chosen) + 1, "a path");
    }
    if (find_near(out))
        return FATHOM_OK;
    return fail(err, FATHOM_EUNSUPPORTED,
                "there is no '" PROGRAM
                "', the program that decodes all but PPM pictures: build it (FATHOM_HELPER=ON), "
                "install it to '" FATHOM_LIBEXEC_DIR "', or name it in the environment variable FATHOM_HELPER");
}
