#include "session.h"

#include "interrupt.h"
#include "password.h"

#include <stdio.h>

#define MAX_PASSWORDS 3 /* that a person may type for a document */

bool session_interrupted(struct session *s)
{
    s->cut = s->cut || interrupt_signal();
    return s->cut;
}

enum fathom_status session_read_file(struct session *s, const char *path, const struct fathom_read_options *options,
                                     const struct fathom_callbacks *callbacks, struct fathom_err *err)
{
    struct fathom_read_options own = *options;
    char *typed = NULL;
    enum fathom_status status = fathom_read_file(s->context, path, &own, callbacks, err);
    for (int i = 0; status == FATHOM_EPASSWORD && i < MAX_PASSWORDS; i++) {
        terminal_clear(&s->report.terminal);
        password_free(typed);
        if (!(typed = password_ask(path)))
            break;
        own.password = typed;
        status = fathom_read_file(s->context, path, &own, callbacks, err);
    }
    password_free(typed);
    if (status == FATHOM_ECANCELLED)
        snprintf(err->message, sizeof err->message, "stopped by %s before its first page", interrupt_name());
    return status;
}

static bool write_line(void *user, const char *text, size_t n) { return fwrite(text, 1, n, user) == n; }

void session_stats(struct session *s, const char *path, const struct fathom_page *page)
{
    const struct fathom_writer_options options = {.file = path};
    struct fathom_writer *writer = NULL;
    struct fathom_err err;
    if (!s->options->stats)
        return;
    terminal_clear(&s->report.terminal);
    if (fathom_writer_open(FATHOM_STATS, &options, write_line, stderr, &writer, &err) == FATHOM_OK &&
        fathom_writer_page(writer, page, &err) == FATHOM_OK)
        fathom_writer_close(writer, &err);
    else
        fathom_writer_discard(writer);
}
