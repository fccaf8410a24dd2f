#include "terminal.h"

#include "utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define REDRAW_MS 100

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct terminal terminal_init(bool quiet)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    struct terminal t = {0};
    t.talks = !quiet && isatty(STDERR_FILENO);
    t.draws = t.talks && term && strcmp(term, "dumb") != 0;
    t.colours = t.draws && !(no_color && *no_color);
    return t;
}

static char *format_printable(const char *format, va_list args)
{
    char *s;
    if (vasprintf(&s, format, args) < 0)
        return NULL;
    char *printable = utf8_printable(s);
    free(s);
    return printable;
}

void terminal_progress(struct terminal *t, const char *format, ...)
{
    int64_t now = now_ms();
    if (!t->draws || (t->drawn && now - t->drawn_ms < REDRAW_MS))
        return;
    va_list args;
    va_start(args, format);
    char *line = format_printable(format, args);
    va_end(args);
    if (!line)
        return;
    struct winsize size = {0};
    int width = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
    /* The cut counts bytes: a name in another script may be cut early, but the line never wraps. A character cut in two
     * is dropped whole. */
    size_t n = strlen(line);
    if (n > (size_t)width) {
        n = (size_t)width;
        while (n > 0 && ((unsigned char)line[n] & 0xc0) == 0x80)
            n--;
    }
    fprintf(stderr, t->colours ? "\r\033[K\033[2m%.*s\033[0m" : "\r\033[K%.*s", (int)n, line);
    free(line);
    t->drawn = true;
    t->drawn_ms = now;
}

void terminal_clear(struct terminal *t)
{
    if (t->drawn)
        fputs("\r\033[K", stderr);
    t->drawn = false;
}

void terminal_note(struct terminal *t, const char *format, ...)
{
    if (!t->talks)
        return;
    va_list args;
    va_start(args, format);
    char *line = format_printable(format, args);
    va_end(args);
    if (!line)
        return;
    terminal_clear(t);
    fprintf(stderr, t->colours ? "\033[2m%s\033[0m\n" : "%s\n", line);
    free(line);
}

static void print_line(const char *before, const char *format, va_list args)
{
    char *line = format_printable(format, args);
    fprintf(stderr, "%s%s\n", before, line ? line : "out of memory");
    free(line);
}

void terminal_error(struct terminal *t, const char *format, ...)
{
    terminal_clear(t);
    va_list args;
    va_start(args, format);
    print_line("fathom: ", format, args);
    va_end(args);
}

/* Whether a message names the path itself. The library's messages are printable, the path need not be. */
static bool names(const char *message, const char *path)
{
    char *quoted = NULL;
    if (asprintf(&quoted, "'%s", path) < 0) /* it may go on: 'DIR/config.json' */
        return false;
    for (char *c = quoted; *c; c++) /* as the library does */
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    bool found = strstr(message, quoted) != NULL;
    free(quoted);
    return found;
}

char *file_error(const char *path, size_t page, const struct fathom_err *err)
{
    const char *reason = err->message[0] ? err->message : fathom_status_name(err->status);
    char where[40] = "", *text;
    bool named = names(reason, path);
    if (page > 0)
        snprintf(where, sizeof where, "page %zu: ", page);
    if (asprintf(&text, "%s%s%s%s%s", named ? "" : "'", named ? "" : path, named ? "" : "': ", where, reason) < 0)
        return NULL;
    return text;
}

void terminal_file_error(struct terminal *t, const char *path, size_t page, const struct fathom_err *err)
{
    char *text = file_error(path, page, err);
    terminal_error(t, "%s", text ? text : "out of memory");
    free(text);
}

void print_model_error(const char *path, const char *source, const struct fathom_err *err)
{
    const char *reason = err->message[0] ? err->message : fathom_status_name(err->status);
    if (names(reason, path))
        print_error("model%s: %s", source, reason);
    else
        print_error("model%s '%s': %s", source, path, reason);
}

void print_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_line("fathom: ", format, args);
    va_end(args);
}

void print_info(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_line("", format, args);
    va_end(args);
}
