#include "inputs.h"

#include "terminal.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define MAX_DEPTH 64 /* of folders in folders */

size_t inputs_extension(const char *name)
{
    static const char *const known[] = {"png", "jpg",  "jpeg", "jpe",  "ppm", "pgm", "pbm",  "pnm",
                                        "pdf", "webp", "tif",  "tiff", "bmp", "gif", "heic", "heif"};
    const char *dot = strrchr(name, '.');
    if (!dot || dot == name || dot[-1] == '/')
        return 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcasecmp(dot + 1, known[i]) == 0)
            return strlen(dot);
    return 0;
}

static void out_of_memory(struct inputs *in)
{
    if (!in->failed)
        print_error("out of memory");
    in->failed = true;
}

/* The name begins at `at` of path. */
static void add(struct inputs *in, const char *path, size_t at)
{
    if (in->n == in->capacity) {
        size_t capacity = 2 * in->capacity + 16;
        struct input *files = reallocarray(in->files, capacity, sizeof *files);
        if (!files) {
            out_of_memory(in);
            return;
        }
        in->files = files;
        in->capacity = capacity;
    }
    char *copy = strdup(path);
    if (!copy) {
        out_of_memory(in);
        return;
    }
    struct stat st = {0};
    if (stat(path, &st) != 0)
        st.st_ino = 0;
    in->files[in->n++] = (struct input){copy, copy + at, st.st_dev, st.st_ino};
}

static void add_file(struct inputs *in, const char *path)
{
    const char *slash = strrchr(path, '/');
    add(in, path, slash ? (size_t)(slash + 1 - path) : 0);
}

static int in_order(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }
static int is_visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static bool is_folder(const char *path, struct stat *st) { return stat(path, st) == 0 && S_ISDIR(st->st_mode); }

/* What the walk through a folder that was given needs to know. */
struct walk {
    struct inputs *in;
    size_t root;               /* length of the given folder, the slash included */
    const struct stat *except; /* NULL: none                                     */
};

static void add_folder(const struct walk *walk, const char *folder, int depth)
{
    struct dirent **entries;
    int n = depth > MAX_DEPTH ? -1 : scandir(folder, &entries, is_visible, in_order);
    if (n < 0) {
        const char *reason = depth > MAX_DEPTH ? "too many folders in folders" : strerror(errno);
        print_error("'%s': cannot list: %s", folder, reason);
        walk->in->failed = true;
        return;
    }
    for (int i = 0; i < n; i++) {
        const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
        struct stat st;
        char *path;
        if (asprintf(&path, "%s%s%s", folder, slash, entries[i]->d_name) < 0) {
            out_of_memory(walk->in);
        } else {
            /* A link to a folder could lead round in a circle. */
            bool below = lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
            bool excepted =
                below && walk->except && st.st_dev == walk->except->st_dev && st.st_ino == walk->except->st_ino;
            if (below && !excepted)
                add_folder(walk, path, depth + 1);
            else if (!below && inputs_extension(entries[i]->d_name) && !is_folder(path, &st))
                add(walk->in, path, walk->root);
            free(path);
        }
        free(entries[i]);
    }
    free(entries);
}

static void add_path(struct inputs *in, const char *path, const char *except)
{
    struct stat st, excepted;
    if (strcmp(path, "-") == 0 || !is_folder(path, &st)) {
        add_file(in, path);
        return;
    }
    size_t n = strlen(path), before = in->n;
    bool failed = in->failed;
    struct walk walk = {in, n + (path[n - 1] != '/'), except && is_folder(except, &excepted) ? &excepted : NULL};
    in->failed = false;
    add_folder(&walk, path, 0);
    if (in->n == before && !in->failed) {
        print_error("'%s': no picture or document in this folder", path);
        in->failed = true;
    }
    in->failed = in->failed || failed;
}

void inputs_add(struct inputs *in, const char *argument, const char *except)
{
    glob_t found;
    if (lstat(argument, &(struct stat){0}) != 0 && glob(argument, GLOB_NOMAGIC, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            add_path(in, found.gl_pathv[i], except);
        globfree(&found);
        return;
    }
    add_path(in, argument, except);
}

/* The whole of a list, with a NUL behind it; NULL and errno when it cannot be had. */
static char *read_list(const char *list, size_t *n)
{
    FILE *file = strcmp(list, "-") == 0 ? stdin : fopen(list, "re");
    char *text = NULL;
    size_t capacity = 0;
    *n = 0;
    if (!file)
        return NULL;
    for (size_t got = 1; got;) {
        if (*n + 1 >= capacity) {
            char *larger = realloc(text, capacity = 2 * capacity + 4096);
            if (!larger)
                break;
            text = larger;
        }
        got = fread(text + *n, 1, capacity - *n - 1, file);
        *n += got;
    }
    bool ok = feof(file) && !ferror(file);
    int error = errno;
    if (file != stdin)
        fclose(file);
    if (!ok) {
        free(text);
        errno = error;
        return NULL;
    }
    text[*n] = '\0';
    return text;
}

void inputs_add_list(struct inputs *in, const char *list, const char *except)
{
    size_t n;
    errno = 0;
    char *text = read_list(list, &n);
    if (!text) {
        print_error("'%s': cannot read the list: %s", list, strerror(errno ? errno : EIO));
        in->failed = true;
        return;
    }
    char separator = memchr(text, '\0', n) ? '\0' : '\n';
    for (char *name = text, *end; name < text + n; name = end + 1) {
        end = memchr(name, separator, (size_t)(text + n - name));
        if (!end)
            end = text + n;
        *end = '\0';
        if (*name)
            add_path(in, name, except);
    }
    free(text);
}

bool inputs_have(const struct inputs *in, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return false;
    for (size_t i = 0; i < in->n; i++)
        if (in->files[i].inode == st.st_ino && in->files[i].device == st.st_dev)
            return true;
    return false;
}

void inputs_free(struct inputs *in)
{
    for (size_t i = 0; i < in->n; i++)
        free(in->files[i].path);
    free(in->files);
    *in = (struct inputs){0};
}
