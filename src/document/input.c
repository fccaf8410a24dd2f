#include "document/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

#define WRITER_PATIENCE_MS 3000

void input_close(struct input *in)
{
    if (in->fd >= 0)
        close(in->fd);
    in->fd = -1;
}

bool input_read(const struct input *in, void *out, size_t n, size_t at, size_t *n_read)
{
    for (*n_read = 0; *n_read < n;) {
        ssize_t got = pread(in->fd, (char *)out + *n_read, n - *n_read, (off_t)(at + *n_read));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        if (got == 0)
            break;
        *n_read += (size_t)got;
    }
    return true;
}

enum fathom_status input_read_all(const struct input *in, size_t max_bytes, uint8_t **out, size_t *n,
                                  struct fathom_err *err)
{
    *out = NULL;
    *n = 0;
    if (in->size > max_bytes)
        return fail(err, FATHOM_ELIMIT, "%zu bytes, the limit is %zu", in->size, max_bytes);
    if (!(*out = malloc(in->size + 1)))
        return fail_nomem(err, in->size + 1, "the file");
    if (input_read(in, *out, in->size, 0, n))
        return FATHOM_OK;
    int error = errno;
    free(*out);
    *out = NULL;
    return fail(err, FATHOM_EIO, "cannot read: %s", strerror(error));
}

/* ---- pipes ------------------------------------------------------------------------------------------------- */

static bool write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t written = write(fd, bytes, n);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        bytes += written;
        n -= (size_t)written;
    }
    return true;
}

/* Waits for bytes or for the end. A named pipe without a writer would keep us for ever: that has a limit, while a writer
 * may be as slow as it likes. */
static enum fathom_status wait_for_bytes(int fd, bool has_writer, double give_up_ms, struct fathom_err *err)
{
    double left = give_up_ms - clock_ms();
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n = poll(&p, 1, has_writer ? -1 : left > 0 ? (int)left + 1 : 0);
    if (n == 0)
        return fail(err, FATHOM_EIO, "a pipe that nobody writes to");
    if (n < 0 && errno != EINTR)
        return fail(err, FATHOM_EIO, "cannot read: %s", strerror(errno));
    return FATHOM_OK;
}

static enum fathom_status copy_pipe(int from, int to, bool is_named, size_t max_bytes, size_t *n,
                                    struct fathom_err *err)
{
    char bytes[1 << 16];
    double give_up_ms = clock_ms() + WRITER_PATIENCE_MS;
    bool has_writer = !is_named;
    enum fathom_status status = FATHOM_OK;
    *n = 0;
    for (;;) {
        ssize_t got = read(from, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno != EAGAIN)
            return fail(err, FATHOM_EIO, "cannot read: %s", strerror(errno));
        if (got == 0 && has_writer)
            return FATHOM_OK;
        if (got <= 0) {
            has_writer = got < 0; /* without one, a read would have found the end */
            if ((status = wait_for_bytes(from, has_writer, give_up_ms, err)))
                return status;
            has_writer = true;
            continue;
        }
        has_writer = true;
        if ((size_t)got > max_bytes - *n)
            return fail(err, FATHOM_ELIMIT, "more than %zu bytes from a pipe, which is the limit", max_bytes);
        if (!write_all(to, bytes, (size_t)got))
            return fail(err, errno == ENOSPC || errno == ENOMEM ? FATHOM_ENOMEM : FATHOM_EIO,
                        "cannot keep what comes from the pipe: %s", strerror(errno));
        *n += (size_t)got;
    }
}

/* Replaces the pipe by a file in memory with what came out of it. */
static enum fathom_status keep_pipe(struct input *in, bool is_named, size_t max_bytes, struct fathom_err *err)
{
    int memory = memfd_create("fathom-input", MFD_CLOEXEC);
    if (memory < 0)
        return fail(err, FATHOM_EIO, "cannot make a file in memory: %s", strerror(errno));
    enum fathom_status status = copy_pipe(in->fd, memory, is_named, max_bytes, &in->size, err);
    close(in->fd);
    in->fd = memory;
    return status;
}

/* ---- opening ----------------------------------------------------------------------------------------------- */

/* O_NONBLOCK: opening a named pipe must not wait for a writer; it has no meaning for regular files. */
static int open_path(const char *path)
{
    if (strcmp(path, "-") == 0)
        return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

enum fathom_status input_open(struct input *in, const char *path, size_t max_bytes, struct fathom_err *err)
{
    struct stat st;
    enum fathom_status status = FATHOM_OK;
    bool is_stdin = strcmp(path, "-") == 0;

    *in = (struct input){open_path(path), 0};
    if (in->fd < 0)
        return fail(err, FATHOM_EIO, "cannot open: %s", strerror(errno));
    if (fstat(in->fd, &st))
        status = fail(err, FATHOM_EIO, "cannot read: %s", strerror(errno));
    else if (S_ISREG(st.st_mode) && !(is_stdin && lseek(in->fd, 0, SEEK_CUR) > 0))
        in->size = st.st_size > 0 ? (size_t)st.st_size : 0;
    else if (S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))
        status = keep_pipe(in, S_ISFIFO(st.st_mode) && !is_stdin, max_bytes, err);
    else
        status = fail(err, FATHOM_EIO, "%s, not a file or a pipe",
                      S_ISDIR(st.st_mode) ? "a directory"
                      : isatty(in->fd)    ? "a terminal"
                                          : "a device");
    if (status)
        input_close(in);
    return status;
}
