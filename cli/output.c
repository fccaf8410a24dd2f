#include "output.h"

#include "terminal.h"

#include <errno.h>
#include <signal.h>
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

void output_setup(void)
{
    signal(SIGPIPE, SIG_IGN);
    atexit(check_standard_output);
}

bool output_open(struct output *out, const char *path)
{
    *out = (struct output){.file = stdout, .path = path};
    if (path) {
        out->file = fopen(path, "we");
        if (!out->file) {
            print_error("'%s': cannot create: %s", path, strerror(errno));
            return false;
        }
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

/* The length of a control character at s: C0 but for tab and line feed, DEL, or C1 in its two bytes of UTF-8; else 0. */
static size_t control_length(const char *s, size_t n)
{
    unsigned char c = (unsigned char)s[0], next = n > 1 ? (unsigned char)s[1] : 0;
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
        return 1;
    return c == 0xc2 && next >= 0x80 && next < 0xa0 ? 2 : 0;
}

bool output_write(struct output *out, const char *bytes, size_t n)
{
    if (n)
        out->mid_line = bytes[n - 1] != '\n';
    if (!out->is_terminal)
        return write_bytes(out, bytes, n);
    while (n > 0) {
        size_t run = 0, control = 0;
        while (run < n && (control = control_length(bytes + run, n - run)) == 0)
            run++;
        if (!write_bytes(out, bytes, run) || (control && !write_bytes(out, "?", 1)))
            return false;
        bytes += run + control;
        n -= run + control;
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

bool output_close(struct output *out)
{
    output_flush(out);
    if (out->path && fclose(out->file) != 0 && !out->error)
        out->error = errno;
    if (out->error)
        report(out->path, out->error);
    return !out->error;
}
