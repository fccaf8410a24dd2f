#include "base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_TRIES 100
#define WRITE_STEP ((size_t)1 << 30) /* Linux writes at most 2 GiB in one call */

static void release(struct outfile *f)
{
    free(f->path);
    free(f->temporary);
    *f = (struct outfile){.fd = -1};
}

/* O_EXCL, so that nobody's link of that name is followed; a name left by an earlier crash is stepped over. */
enum fathom_status outfile_create(struct outfile *f, const char *path, struct fathom_err *err)
{
    *f = (struct outfile){.fd = -1};
    for (int try = 0; try < MAX_TRIES; try++) {
        free(f->temporary);
        if (asprintf(&f->temporary, "%s.%ld-%d.part", path, (long)getpid(), try) < 0) {
            f->temporary = NULL;
            return fail_nomem(err, strlen(path) + 32, "a file name");
        }
        f->fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (f->fd >= 0 || errno != EEXIST)
            break;
    }
    if (f->fd < 0) {
        int error = errno;
        release(f);
        return fail(err, FATHOM_EIO, "cannot create '%s': %s", path, strerror(error));
    }
    f->path = strdup(path);
    if (!f->path) {
        outfile_discard(f);
        return fail_nomem(err, strlen(path) + 1, "a file name");
    }
    return FATHOM_OK;
}

enum fathom_status outfile_write(struct outfile *f, const void *data, size_t n, struct fathom_err *err)
{
    const char *at = data;
    while (n > 0) {
        ssize_t done = write(f->fd, at, n < WRITE_STEP ? n : WRITE_STEP);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return fail(err, FATHOM_EIO, "cannot write '%s': %s", f->path, strerror(errno));
        at += done;
        n -= (size_t)done;
    }
    return FATHOM_OK;
}

enum fathom_status outfile_commit(struct outfile *f, struct fathom_err *err)
{
    int error = fsync(f->fd) ? errno : 0;
    if (close(f->fd) && !error)
        error = errno;
    f->fd = -1;
    if (!error && rename(f->temporary, f->path))
        error = errno;
    enum fathom_status status = FATHOM_OK;
    if (error) {
        status = fail(err, FATHOM_EIO, "cannot write '%s': %s", f->path, strerror(error));
        unlink(f->temporary);
    }
    release(f);
    return status;
}

void outfile_discard(struct outfile *f)
{
    if (!f->temporary)
        return;
    if (f->fd >= 0)
        close(f->fd);
    unlink(f->temporary);
    release(f);
}
