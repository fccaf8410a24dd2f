#include "pictures.h"

#include "replace.h"
#include "terminal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool make_folders(const char *path)
{
    char *copy = strdup(path);
    bool ok = copy != NULL;
    for (char *slash = copy ? strchr(copy + 1, '/') : NULL; ok && slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        ok = mkdir(copy, 0777) == 0 || errno == EEXIST || errno == EISDIR;
        *slash = '/';
    }
    if (!ok)
        print_error("'%s': cannot create its folder: %s", path, strerror(errno));
    free(copy);
    return ok;
}

static bool write_file(void *user, const char *bytes, size_t n) { return fwrite(bytes, 1, n, user) == n; }

static bool cannot_write(const char *path, int error)
{
    print_error("'%s': cannot write: %s", path, strerror(error));
    return false;
}

/* k: which figure, or NULL for the page with its boxes. */
static enum fathom_status draw(const struct fathom_page *page, const size_t *k, FILE *file, struct fathom_err *err)
{
    return k ? fathom_page_figure_jpeg(page, *k, write_file, file, err)
             : fathom_page_overlay_png(page, write_file, file, err);
}

static bool write_picture(const char *target, const struct fathom_page *page, const size_t *k, const char *path)
{
    struct replacement file;
    struct fathom_err err = {0};
    if (!make_folders(target))
        return false;
    if (!replace_open(&file, target))
        return cannot_write(target, errno);
    errno = 0;
    enum fathom_status status = draw(page, k, file.file, &err);
    if (status == FATHOM_OK)
        return replace_commit(&file) || cannot_write(target, errno);
    int error = ferror(file.file) ? errno ? errno : EIO : 0;
    replace_discard(&file);
    if (error)
        return cannot_write(target, error);
    if (k && status == FATHOM_EINVAL)
        return true; /* a figure without a box has no picture */
    print_error("'%s': page %zu: %s", path, page->number, err.message);
    return false;
}

static bool out_of_memory(void)
{
    print_error("out of memory");
    return false;
}

bool pictures_write_figures(const char *folder, const struct fathom_page *page, const char *path)
{
    size_t n = fathom_page_figures(page);
    bool ok = true;
    for (size_t k = 0; ok && k < n; k++) {
        char name[FATHOM_FIGURE_NAME], *target;
        fathom_page_figure_name(page, k, name);
        if (asprintf(&target, "%s%s", folder, name) < 0)
            return out_of_memory();
        ok = write_picture(target, page, &k, path);
        free(target);
    }
    return ok;
}

bool pictures_write_overlay(const char *folder, const struct fathom_page *page, const char *path)
{
    char *target;
    if (asprintf(&target, "%s%zu.png", folder, page->number) < 0)
        return out_of_memory();
    bool ok = write_picture(target, page, NULL, path);
    free(target);
    return ok;
}
