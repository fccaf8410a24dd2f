#include "replace.h"

#include "interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define READER_POLL_NS 50000000L

/* open(2) itself would wait for a reader, and go on waiting after a signal. */
static int open_pipe(const char *path)
{
    for (;;) {
        int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0) {
            fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
            return fd;
        }
        if (errno != ENXIO)
            return -1;
        nanosleep(&(struct timespec){.tv_nsec = READER_POLL_NS}, NULL);
        if (interrupt_signal()) {
            errno = EINTR;
            return -1;
        }
    }
}

/* The name of the temporary file: hidden, and short enough for any file system. */
static char *temporary_name(const char *target)
{
    const char *slash = strrchr(target, '/');
    const char *name = slash ? slash + 1 : target;
    char *temporary;
    if (asprintf(&temporary, "%.*s.%.200s.XXXXXX", (int)(name - target), target, name) < 0)
        return NULL;
    return temporary;
}

static mode_t new_file_mode(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* Makes the temporary file; old is the file to be replaced, or NULL. */
static int open_temporary(struct replacement *r, const struct stat *old)
{
    r->temporary = temporary_name(r->target);
    int fd = r->temporary ? mkostemp(r->temporary, O_CLOEXEC) : -1;
    if (fd < 0)
        return -1;
    if (old && (old->st_uid != geteuid() || old->st_gid != getegid())) {
        /* What we may not give away becomes ours. */
        int ignored = fchown(fd, old->st_uid, old->st_gid);
        (void)ignored;
    }
    fchmod(fd, old ? old->st_mode & 07777 : new_file_mode());
    return fd;
}

static void forget(struct replacement *r)
{
    free(r->target);
    free(r->temporary);
    *r = (struct replacement){0};
}

static int open_any(struct replacement *r, const char *path)
{
    struct stat old;
    bool exists = stat(path, &old) == 0;
    if (exists && S_ISFIFO(old.st_mode))
        return open_pipe(path);
    bool link_to_nothing = !exists && lstat(path, &(struct stat){0}) == 0;
    if ((!exists || S_ISREG(old.st_mode)) && !link_to_nothing) {
        if (exists && access(path, W_OK) != 0)
            return -1; /* a read-only file stays, though its folder would let us */
        r->target = exists ? realpath(path, NULL) : strdup(path);
        int fd = r->target ? open_temporary(r, exists ? &old : NULL) : -1;
        if (fd >= 0)
            return fd;
        int error = errno;
        forget(r);
        errno = error;
        if (!exists || (error != EACCES && error != EPERM))
            return -1;
    }
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

bool replace_open(struct replacement *r, const char *path)
{
    *r = (struct replacement){0};
    int fd = open_any(r, path);
    if (fd < 0) {
        int error = errno;
        forget(r);
        errno = error;
        return false;
    }
    r->file = fdopen(fd, "w");
    if (r->file)
        return true;
    int error = errno;
    close(fd);
    replace_discard(r);
    errno = error;
    return false;
}

bool replace_commit(struct replacement *r)
{
    errno = 0;
    bool ok = !ferror(r->file) && fflush(r->file) == 0;
    int error = errno ? errno : EIO;
    /* The name must not survive a power failure that the content does not. */
    if (ok && r->temporary && fsync(fileno(r->file)) != 0 && errno != EINVAL) {
        ok = false;
        error = errno;
    }
    if (fclose(r->file) != 0 && ok) {
        ok = false;
        error = errno;
    }
    r->file = NULL;
    if (ok && r->temporary && rename(r->temporary, r->target) != 0) {
        ok = false;
        error = errno;
    }
    if (ok)
        forget(r);
    else
        replace_discard(r);
    errno = error;
    return ok;
}

void replace_discard(struct replacement *r)
{
    if (r->file)
        fclose(r->file);
    if (r->temporary)
        unlink(r->temporary);
    forget(r);
}
