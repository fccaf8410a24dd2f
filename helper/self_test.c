#include "helper/self_test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "helper/sandbox.h"

/* Each returns -1 with errno when it is refused, as a system call does. */

static long try_tcp(void) { return socket(AF_INET, SOCK_STREAM, 0); }
static long try_udp(void) { return socket(AF_INET6, SOCK_DGRAM, 0); }
static long try_unix(void) { return socket(AF_UNIX, SOCK_STREAM, 0); }
static long try_netlink(void) { return socket(AF_NETLINK, SOCK_RAW, 0); }

static long try_pair(void)
{
    int pair[2];
    return socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
}

static long try_connect(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(80)};
    return connect(STDIN_FILENO, (struct sockaddr *)&address, sizeof address);
}

static long try_create(void) { return open("/tmp/fathom-self-test", O_WRONLY | O_CREAT, 0600); }
static long try_write(void) { return open("/dev/null", O_WRONLY); }
static long try_read_write(void) { return openat(AT_FDCWD, "/dev/null", O_RDWR); }
static long try_truncate(void) { return open("/dev/null", O_RDONLY | O_TRUNC); }
static long try_tmpfile(void) { return open("/tmp", O_TMPFILE | O_WRONLY, 0600); }
static long try_openat2(void)
{
    uint64_t how[3] = {O_WRONLY};
    return syscall(SYS_openat2, AT_FDCWD, "/dev/null", how, sizeof how);
}
static long try_unlink(void) { return unlink("/tmp/fathom-self-test"); }
static long try_rename(void) { return rename("/tmp/fathom-self-test", "/tmp/fathom-self-test-2"); }
static long try_mkdir(void) { return mkdir("/tmp/fathom-self-test", 0700); }
static long try_link(void) { return symlink("/etc/passwd", "/tmp/fathom-self-test"); }
static long try_chmod(void) { return chmod("/tmp", 0700); }

static long try_program(void)
{
    char *const argv[] = {(char *)"true", NULL};
    return execve("/bin/true", argv, argv + 1);
}

static long try_program_at(void)
{
    char *const argv[] = {(char *)"true", NULL};
    return execveat(AT_FDCWD, "/bin/true", argv, argv + 1, 0);
}

/* A child that comes to be must not go on as we do. */
static long try_fork(void)
{
    long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0)
        _exit(0);
    return pid;
}

static long try_clone3(void)
{
    uint64_t arguments[8] = {[4] = SIGCHLD};
    long pid = syscall(SYS_clone3, arguments, sizeof arguments);
    if (pid == 0)
        _exit(0);
    return pid;
}

static long try_kill(void) { return kill(getppid() > 0 ? getppid() : 1, 0); }
static long try_ptrace(void) { return ptrace(PTRACE_TRACEME, 0, NULL, NULL); }
static long try_uring(void) { return syscall(SYS_io_uring_setup, 1, NULL); }
static long try_prctl(void) { return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); }
static long try_limits(void) { return setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); }
static long try_unshare(void) { return unshare(CLONE_NEWUSER); }

static long try_code(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0;
}

/* Only where the kernel has Landlock; pictures are decoded with no file to open at all. */
static long try_read(void) { return open("/etc/passwd", O_RDONLY); }

static const struct trial {
    const char *what;
    long (*attempt)(void);
} trials[] = {
    {"open a TCP socket", try_tcp},
    {"open a UDP socket", try_udp},
    {"open a Unix socket", try_unix},
    {"open a netlink socket", try_netlink},
    {"make a pair of sockets", try_pair},
    {"connect", try_connect},
    {"create a file", try_create},
    {"open a file for writing", try_write},
    {"open a file for reading and writing", try_read_write},
    {"truncate a file", try_truncate},
    {"make a file without a name", try_tmpfile},
    {"open a file for writing by openat2", try_openat2},
    {"delete a file", try_unlink},
    {"rename a file", try_rename},
    {"make a folder", try_mkdir},
    {"make a link", try_link},
    {"change a file's mode", try_chmod},
    {"start a program", try_program},
    {"start a program by execveat", try_program_at},
    {"fork", try_fork},
    {"fork by clone3", try_clone3},
    {"signal another process", try_kill},
    {"trace", try_ptrace},
    {"set up io_uring", try_uring},
    {"become dumpable", try_prctl},
    {"change limits", try_limits},
    {"enter a namespace", try_unshare},
    {"make memory executable", try_code},
};

static bool is_refused(const struct trial *t, int wanted)
{
    errno = 0;
    bool refused = t->attempt() == -1 && errno == wanted;
    printf("%-36s %s\n", t->what, refused ? "refused" : "NOT REFUSED");
    return refused;
}

int self_test(void)
{
    struct fathom_err err;
    bool ok = true;
    if (sandbox_enter(&err)) {
        fprintf(stderr, "fathom-helper: %s\n", err.message);
        return 1;
    }
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++)
        ok &= is_refused(&trials[i], EPERM);
    int fd = (int)try_read();
    printf("%-36s %s\n", "read a file outside the fonts", fd < 0 ? "refused" : "possible: the kernel has no Landlock");
    if (sandbox_close_files(&err)) {
        fprintf(stderr, "fathom-helper: %s\n", err.message);
        return 1;
    }
    return is_refused(&(struct trial){"read any file, for pictures", try_read}, EPERM) && ok ? 0 : 1;
}
