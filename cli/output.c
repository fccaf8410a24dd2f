#include "output.h"

#include "terminal.h"
#include "utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Standard output belongs to the process, and so does the knowledge that its failure has been reported. */
static bool reported;

static void report(const char *path, int error)
{
    if (path)
        print_error("'%s': cannot write: %s", path, strerror(error));
    else
        print_error("standard output: cannot write: %s", strerror(error));
    if (!path)
        reported = true;
}

static void check_standard_output(void)
{
    errno = 0;
    if (!reported && (fflush(stdout) != 0 || ferror(stdout))) {
        report(NULL, errno ? errno : EIO);
        _exit(1);
    }
}

void output_setup(void) { atexit(check_standard_output); }

bool output_open(struct output *out, const char *path)
{
    *out = (struct output){.file = stdout, .path = path};
    if (path) {
        if (!replace_open(&out->replacement, path)) {
            if (errno != EINTR)
                print_error("'%s': cannot create: %s", path, strerror(errno));
            return false;
        }
        out->file = out->replacement.file;
    }
    out->is_terminal = isatty(fileno(out->file));
    return true;
}

static bool write_bytes(struct output *out, const char *bytes, size_t n)
{
    if (out->error)
        return false;
    errno = 0;
    if (n && fwrite(bytes, 1, n, out->file) != n) {
        out->error = errno ? errno : EIO;
        return false;
    }
    return true;
}

bool output_write(struct output *out, const char *bytes, size_t n)
{
    if (n)
        out->mid_line = bytes[n - 1] != '\n';
    if (!out->is_terminal)
        return write_bytes(out, bytes, n);
    while (n > 0) {
        size_t run = 0, length = 0;
        while (run < n && utf8_is_harmless(bytes + run, n - run, &length))
            run += length;
        bool harmful = run < n;
        if (!write_bytes(out, bytes, run) || (harmful && !write_bytes(out, "?", 1)))
            return false;
        bytes += run + (harmful ? length : 0);
        n -= run + (harmful ? length : 0);
    }
    return !out->error;
}

bool output_flush(struct output *out)
{
    errno = 0;
    if (!out->error && fflush(out->file) != 0)
        out->error = errno ? errno : EIO;
    return !out->error;
}

bool output_end_line(struct output *out) { return !out->mid_line || output_write(out, "\n", 1); }

bool output_close(struct output *out, bool keep)
{
    output_flush(out);
    if (out->path && keep && !out->error) {
        if (!replace_commit(&out->replacement))
            out->error = errno;
    } else if (out->path) {
        replace_discard(&out->replacement);
    }
    if (out->error)
        report(out->path, out->error);
    return !out->error;
}
