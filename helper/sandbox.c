#include "helper/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <seccomp.h>

#include "helper/landlock.h"

static int watched_sock = -1;

/* ---- limits ------------------------------------------------------------------------------------------------ */

/* A limit that is narrower already stays. */
static bool limit(int resource, rlim_t most)
{
    struct rlimit now;
    if (getrlimit((__rlimit_resource_t)resource, &now))
        return false;
    most = most < now.rlim_max ? most : now.rlim_max;
    return setrlimit((__rlimit_resource_t)resource, &(struct rlimit){most, most}) == 0;
}

/* A sanitizer's shadow memory takes terabytes of address space. */
static bool limit_memory(void)
{
#ifdef FATHOM_HELPER_SANITIZED
    return true;
#else
    return limit(RLIMIT_AS, (rlim_t)6 << 30);
#endif
}

static bool limit_resources(void)
{
    return limit(RLIMIT_CORE, 0) && limit(RLIMIT_NOFILE, 64) && limit(RLIMIT_FSIZE, 0) &&
           limit(RLIMIT_CPU, 12 * 3600) && limit_memory();
}

/* ---- system calls ------------------------------------------------------------------------------------------ */

static const int allowed[] = {
    /* memory */
    SCMP_SYS(brk),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(madvise),
    /* descriptors that are open */
    SCMP_SYS(read),
    SCMP_SYS(pread64),
    SCMP_SYS(readv),
    SCMP_SYS(write),
    SCMP_SYS(writev),
    SCMP_SYS(lseek),
    SCMP_SYS(close),
    SCMP_SYS(fstat),
    SCMP_SYS(dup),
    SCMP_SYS(fstatfs),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(recvmsg),
    SCMP_SYS(sendmsg),
    SCMP_SYS(getdents64),
    SCMP_SYS(fadvise64),
    /* what files are called and what they are */
    SCMP_SYS(newfstatat),
    SCMP_SYS(stat),
    SCMP_SYS(lstat),
    SCMP_SYS(statx),
    SCMP_SYS(access),
    SCMP_SYS(faccessat),
    SCMP_SYS(faccessat2),
    SCMP_SYS(readlink),
    SCMP_SYS(readlinkat),
    SCMP_SYS(statfs),
    SCMP_SYS(getcwd),
    /* the process itself */
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(alarm),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(futex),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(getpid),
    SCMP_SYS(gettid),
    SCMP_SYS(getuid),
    SCMP_SYS(geteuid),
    SCMP_SYS(getgid),
    SCMP_SYS(getegid),
    SCMP_SYS(getrusage),
    SCMP_SYS(uname),
    SCMP_SYS(sysinfo),
    /* time and chance */
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_getres),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(nanosleep),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(time),
    SCMP_SYS(getrandom),
};

/* Opening with none of the flags that could write or create. */
#define FOR_READING(argument)                                                                                          \
    SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY),      \
             O_RDONLY)

/* What is refused gets EPERM: libraries that ask for more than they need go on without. */
static int allow(scmp_filter_ctx filter)
{
    const scmp_datum_t self = (scmp_datum_t)getpid();
    int error = 0;
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed && !error; i++)
        error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
    const struct {
        int call;
        struct scmp_arg_cmp when;
    } rules[] = {
        {SCMP_SYS(openat), FOR_READING(2)},
        {SCMP_SYS(open), FOR_READING(1)},
        {SCMP_SYS(mmap), SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)},
        {SCMP_SYS(mprotect), SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)},
        {SCMP_SYS(tgkill), SCMP_A0(SCMP_CMP_EQ, self, 0)},
        {SCMP_SYS(seccomp), SCMP_A0(SCMP_CMP_EQ, SECCOMP_SET_MODE_FILTER, 0)}, /* a filter can only take away */
        {SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_GETFD, 0)},
        {SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_SETFD, 0)},
        {SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_GETFL, 0)},
        {SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_DUPFD_CLOEXEC, 0)},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules && !error; i++)
        error = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, rules[i].call, 1, &rules[i].when);
    return error;
}

static enum fathom_status load(scmp_filter_ctx filter, int error, struct fathom_err *err)
{
    if (!error)
        error = seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0); /* that is done already */
    if (!error)
        error = seccomp_load(filter);
    seccomp_release(filter);
    return error ? fail(err, FATHOM_EUNSUPPORTED, "the system refuses the decoder its sandbox: %s", strerror(-error))
                 : FATHOM_OK;
}

enum fathom_status sandbox_enter(struct fathom_err *err)
{
    if (!limit_resources() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
        return fail(err, FATHOM_EUNSUPPORTED, "the system refuses the decoder its limits: %s", strerror(errno));
    landlock_allow_fonts();
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!filter)
        return fail_nomem(err, 4096, "the sandbox");
    return load(filter, allow(filter), err);
}

/* The filters of a process add up: the strictest answer counts. */
enum fathom_status sandbox_close_files(struct fathom_err *err)
{
    static const int calls[] = {SCMP_SYS(openat),     SCMP_SYS(open),     SCMP_SYS(newfstatat), SCMP_SYS(stat),
                                SCMP_SYS(lstat),      SCMP_SYS(statx),    SCMP_SYS(access),     SCMP_SYS(faccessat),
                                SCMP_SYS(faccessat2), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(statfs)};
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int error = 0;
    if (!filter)
        return fail_nomem(err, 4096, "the sandbox");
    for (size_t i = 0; i < sizeof calls / sizeof *calls && !error; i++)
        error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), calls[i], 0);
    return load(filter, error, err);
}

/* ---- time -------------------------------------------------------------------------------------------------- */

/* The library's process is gone: nobody waits for this page any more. (The system could tell of a parent's death, but
 * means the thread that started us, which may have ended for good reasons.) */
static void on_io(int signal)
{
    int error = errno;
    struct pollfd p = {.fd = watched_sock};
    (void)signal;
    if (poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR)))
        _exit(0);
    errno = error;
}

void sandbox_watch(int sock)
{
    struct sigaction action = {.sa_handler = on_io, .sa_flags = SA_RESTART};
    watched_sock = sock;
    sigaction(SIGIO, &action, NULL);
    fcntl(sock, F_SETOWN, getpid());
    fcntl(sock, F_SETFL, fcntl(sock, F_GETFL) | O_ASYNC);
}

void sandbox_allow_time(unsigned seconds) { alarm(seconds); }
