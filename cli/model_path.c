#include "model_path.h"

#include "terminal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_model(const char *dir)
{
    char *config;
    if (asprintf(&config, "%s/config.json", dir) < 0)
        return false;
    bool yes = access(config, F_OK) == 0;
    free(config);
    return yes;
}

/* dir/below if a model is there, else NULL. */
static char *look(const char *dir, const char *below)
{
    char *path;
    if (asprintf(&path, "%s/%s", dir, below) < 0)
        return NULL;
    if (is_model(path))
        return path;
    free(path);
    return NULL;
}

static char *built_in(void)
{
    char program[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    char *found = NULL;
    if (n > 0) {
        program[n] = '\0';
        char *slash = strrchr(program, '/');
        if (slash) {
            *slash = '\0';
            found = look(program, "../share/fathom/models/mini");
            if (!found)
                found = look(program, "../../models/mini");
        }
    }
    return found ? found : look(FATHOM_MODEL_DIR, "mini");
}

char *model_path(const char *given, const char **source)
{
    const char *environment = getenv("FATHOM_MODEL");
    bool from_environment = !given && environment && *environment;
    *source = from_environment ? " of FATHOM_MODEL" : "";
    char *path = given ? strdup(given) : from_environment ? strdup(environment) : built_in();
    if (!path)
        print_error(given || from_environment
                        ? "out of memory"
                        : "the built-in model is not there: name a model folder with -m DIR or in FATHOM_MODEL");
    return path;
}
