#include "document/decoder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum fathom_status decoder_create(struct decoder **out, struct fathom_err *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return fail_nomem(err, sizeof **out, "the decoder");
    (*out)->sock = -1;
    return FATHOM_OK;
}

void decoder_destroy(struct decoder *d)
{
    if (d)
        decoder_stop(d);
    free(d);
}

uint32_t decoder_time_s(void)
{
    const char *text = getenv("FATHOM_HELPER_TIMEOUT");
    char *end;
    long value = text && *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : 0;
    return value >= 1 && value <= PROTOCOL_MAX_TIME && !*end ? (uint32_t)value : 120;
}

/* ---- start ------------------------------------------------------------------------------------------------- */

/* What the process needs of our environment: a program's other secrets are none of its business. */
static bool is_passed_on(const char *variable)
{
    static const char *const names[] = {
        "LANG=",       "LC_ALL=",          "LC_CTYPE=",     "HOME=",          "XDG_DATA_HOME=",
        "FONTCONFIG_", "LD_LIBRARY_PATH=", "ASAN_OPTIONS=", "UBSAN_OPTIONS=", "TSAN_OPTIONS="};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(variable, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* Pointers into our own environment; free the array alone. */
static char **make_environment(void)
{
    size_t n = 0;
    for (char **e = environ; e && *e; e++)
        n += is_passed_on(*e);
    char **out = calloc(n + 1, sizeof *out);
    if (!out)
        return NULL;
    n = 0;
    for (char **e = environ; e && *e; e++)
        if (is_passed_on(*e))
            out[n++] = *e;
    return out;
}

/* The child has the socket and nothing else of ours, the signals' usual actions, and a session of its own: Ctrl-C is for
 * the program to handle. */
static int spawn(const char *path, int sock, char **environment, pid_t *pid)
{
    char *const argv[] = {(char *)"fathom-helper", (char *)"serve", NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int error;

    if ((error = posix_spawn_file_actions_init(&files)))
        return error;
    if ((error = posix_spawnattr_init(&attributes))) {
        posix_spawn_file_actions_destroy(&files);
        return error;
    }
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    if (!(error = posix_spawn_file_actions_adddup2(&files, sock, PROTOCOL_FD)) &&
        !(error = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0)) &&
        !(error = posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)) &&
        !(error = posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0)) &&
        !(error = posix_spawn_file_actions_addclosefrom_np(&files, PROTOCOL_FD + 1)))
        error = posix_spawn(pid, path, &files, &attributes, argv, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

enum fathom_status decoder_start(struct decoder *d, struct fathom_err *err)
{
    int pair[2];
    char *path;
    enum fathom_status status;

    if (d->pid)
        return FATHOM_OK;
    if ((status = helper_find(&path, err)))
        return status;
    char **environment = make_environment();
    if (!environment)
        status = fail_nomem(err, sizeof *environment, "the decoder's environment");
    else if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        status = fail(err, FATHOM_EIO, "cannot start the decoder: %s", strerror(errno));
    else {
        int error = spawn(path, pair[1], environment, &d->pid);
        close(pair[1]);
        if (error) {
            close(pair[0]);
            d->pid = 0;
            status = fail(err, FATHOM_EIO, "cannot start the decoder '%s': %s", path, strerror(error));
        } else {
            d->sock = pair[0];
            d->owner = NULL;
            d->n_pages = 0;
        }
    }
    free(environment);
    free(path);
    return status;
}

/* ---- end --------------------------------------------------------------------------------------------------- */

/* Takes the process's leave; *how is its wait status. False: it is gone and somebody else has waited for it. */
static bool reap(struct decoder *d, double patience_ms, int *how)
{
    double deadline = clock_ms() + patience_ms;
    pid_t got;
    if (d->sock >= 0)
        close(d->sock);
    d->sock = -1;
    while ((got = waitpid(d->pid, how, WNOHANG)) == 0 && clock_ms() < deadline)
        nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
    if (got == 0) {
        kill(d->pid, SIGKILL);
        do
            got = waitpid(d->pid, how, 0);
        while (got < 0 && errno == EINTR);
    }
    d->pid = 0;
    d->owner = NULL;
    return got > 0;
}

void decoder_stop(struct decoder *d)
{
    int how;
    if (d->pid) {
        kill(d->pid, SIGKILL); /* it has nothing to put in order */
        reap(d, 0, &how);
    }
}

/* ---- asking ------------------------------------------------------------------------------------------------ */

static enum fathom_status fail_dead(struct decoder *d, const char *about, struct fathom_err *err)
{
    int how;
    if (!reap(d, 1000, &how))
        return fail(err, FATHOM_EIO, "the decoder died on %s", about);
    if (WIFSIGNALED(how))
        return fail(err, FATHOM_EIO, "the decoder died of signal %d (%s) on %s", WTERMSIG(how),
                    strsignal(WTERMSIG(how)), about);
    return fail(err, FATHOM_EIO, "the decoder ended with status %d on %s", WEXITSTATUS(how), about);
}

/* What to do about a packet that did not come as it should. */
static enum fathom_status fail_receipt(struct decoder *d, enum receipt receipt, uint32_t time_s, const char *about,
                                       struct fathom_err *err)
{
    if (receipt == RECEIVED_END)
        return fail_dead(d, about, err);
    decoder_stop(d);
    if (receipt == RECEIVED_NONE)
        return fail(err, FATHOM_ELIMIT,
                    "the decoder takes longer than %u s on %s (FATHOM_HELPER_TIMEOUT sets the limit)", time_s, about);
    return fail(err, FATHOM_EIO, "the decoder gives no proper answer on %s", about);
}

enum fathom_status decoder_ask(struct decoder *d, const struct request *request, int fd,
                               const struct image_limits *limits, const char *about, struct reply *reply,
                               struct fathom_err *err)
{
    double deadline = clock_ms() + 1e3 * request->time_s;
    if (!protocol_send(d->sock, request, sizeof *request, fd))
        return fail_dead(d, about, err);
    enum receipt receipt = protocol_receive(d->sock, reply, sizeof *reply, NULL, deadline);
    if (receipt != RECEIVED)
        return fail_receipt(d, receipt, request->time_s, about, err);
    if (reply_is_sane(reply, request->kind, limits))
        return FATHOM_OK;
    if (reply->version == PROTOCOL_VERSION)
        return fail_receipt(d, RECEIVED_OTHER, request->time_s, about, err);
    decoder_stop(d);
    return fail(err, FATHOM_EIO, "the decoder program is not of this version of fathom");
}

enum fathom_status decoder_take(struct decoder *d, const struct reply *reply, uint32_t time_s, const char *about,
                                struct document_page *out, struct fathom_err *err)
{
    double deadline = clock_ms() + 1e3 * time_s;
    enum fathom_status status = reply_make_room(reply, out, err);
    if (status) {
        decoder_stop(d); /* the pixels are on their way */
        return status;
    }
    size_t n_pixel_bytes = (size_t)out->image.width * (size_t)out->image.height * 3, n_text = reply->text_bytes;
    enum receipt receipt = protocol_receive_bytes(d->sock, out->image.rgb, n_pixel_bytes, deadline);
    if (receipt == RECEIVED && out->text_layer)
        receipt = protocol_receive_bytes(d->sock, out->text_layer, n_text, deadline);
    if (receipt != RECEIVED) {
        document_page_release(out);
        return fail_receipt(d, receipt, time_s, about, err);
    }
    if (out->text_layer)
        clean_text_layer(out->text_layer, n_text);
    return FATHOM_OK;
}
