#include "password.h"

#include "interrupt.h"
#include "utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define MAX_PASSWORD_BYTES 256

/* A line, without its end; false at the end of the terminal or of patience. */
static bool read_line(int fd, char line[MAX_PASSWORD_BYTES])
{
    size_t n = 0;
    while (!interrupt_signal()) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        char c;
        if (poll(&ready, 1, -1) < 0 && errno == EINTR)
            continue; /* a signal: SA_RESTART does not reach poll(2) */
        if (read(fd, &c, 1) != 1)
            return false;
        if (c == '\n') {
            line[n] = '\0';
            return n > 0;
        }
        if (n + 1 < MAX_PASSWORD_BYTES)
            line[n++] = c;
    }
    return false;
}

char *password_ask(const char *path)
{
    char line[MAX_PASSWORD_BYTES], *password = NULL;
    struct termios shown, hidden;
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    /* Whoever runs in the background must not stop and wait for the foreground. */
    if (tcgetpgrp(fd) == getpgrp() && tcgetattr(fd, &shown) == 0) {
        char *name = utf8_printable(path);
        hidden = shown;
        hidden.c_lflag &= ~(tcflag_t)ECHO;
        tcsetattr(fd, TCSAFLUSH, &hidden);
        dprintf(fd, "Password for '%s': ", name ? name : "the document");
        if (read_line(fd, line))
            password = strdup(line);
        tcsetattr(fd, TCSAFLUSH, &shown);
        dprintf(fd, "\n");
        explicit_bzero(line, sizeof line);
        free(name);
    }
    close(fd);
    return password;
}

void password_free(char *password)
{
    if (password)
        explicit_bzero(password, strlen(password));
    free(password);
}
