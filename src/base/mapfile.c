#include "base/mapfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* O_NONBLOCK: opening a FIFO must not wait for a writer; it has no meaning for regular files. */
static enum fathom_status open_regular(const char *path, int *fd, size_t *size, struct fathom_err *err)
{
    struct stat st;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return fail(err, FATHOM_EIO, "cannot open '%s': %s", path, strerror(errno));
    if (fstat(*fd, &st) != 0) {
        int error = errno;
        close(*fd);
        return fail(err, FATHOM_EIO, "cannot read '%s': %s", path, strerror(error));
    }
    if (!S_ISREG(st.st_mode)) {
        close(*fd);
        return fail(err, FATHOM_EIO, "'%s' is %s", path, S_ISDIR(st.st_mode) ? "a directory" : "not a regular file");
    }
    *size = (size_t)st.st_size;
    return FATHOM_OK;
}

enum fathom_status mapfile_open(struct mapfile *f, const char *path, struct fathom_err *err)
{
    int fd;
    *f = (struct mapfile){0};
    size_t size = 0;
    enum fathom_status status = open_regular(path, &fd, &size, err);
    if (status || size == 0) {
        if (!status)
            close(fd);
        return status;
    }
    void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    int error = errno;
    close(fd);
    if (data == MAP_FAILED)
        return fail(err, error == ENOMEM ? FATHOM_ENOMEM : FATHOM_EIO, "cannot map '%s' (%zu bytes): %s", path, size,
                    strerror(error));
    *f = (struct mapfile){data, size};
    return FATHOM_OK;
}

void mapfile_close(struct mapfile *f)
{
    if (f->data)
        munmap((void *)f->data, f->size);
    *f = (struct mapfile){0};
}

/* Reads until size bytes or the end of the file, which may have shrunk since its size was taken. */
static enum fathom_status read_all(int fd, char *text, size_t size, size_t *n, const char *path, struct fathom_err *err)
{
    *n = 0;
    while (*n < size) {
        ssize_t got = read(fd, text + *n, size - *n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail(err, FATHOM_EIO, "cannot read '%s': %s", path, strerror(errno));
        if (got == 0)
            break;
        *n += (size_t)got;
    }
    return FATHOM_OK;
}

enum fathom_status file_read(const char *path, size_t max_bytes, char **out, size_t *n, struct fathom_err *err)
{
    int fd;
    size_t size = 0;
    *out = NULL;
    *n = 0;
    enum fathom_status status = open_regular(path, &fd, &size, err);
    if (status)
        return status;
    if (size > max_bytes) {
        close(fd);
        return fail(err, FATHOM_ELIMIT, "'%s' has %zu bytes, more than the limit of %zu", path, size, max_bytes);
    }
    char *text = malloc(size + 1);
    if (!text) {
        close(fd);
        return fail_nomem(err, size + 1, path);
    }
    status = read_all(fd, text, size, n, path, err);
    close(fd);
    if (status) {
        free(text);
        *n = 0;
        return status;
    }
    text[*n] = 0;
    *out = text;
    return FATHOM_OK;
}

enum fathom_status path_join(char **out, const char *dir, const char *name, struct fathom_err *err)
{
    if (asprintf(out, "%s/%s", dir, name) >= 0)
        return FATHOM_OK;
    *out = NULL;
    return fail_nomem(err, strlen(dir) + strlen(name) + 2, "a path");
}
