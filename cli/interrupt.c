#include "interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t caught;

static void note(int number) { caught = number; }

void interrupt_setup(void)
{
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    static const int numbers[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction old;
        /* A shell starts background jobs with SIGINT ignored; that stays. */
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

int interrupt_signal(void) { return caught; }

bool interrupt_is_key(void) { return caught == SIGINT; }

void interrupt_reset(void)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction old, usual = {.sa_handler = SIG_DFL};
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == note)
            sigaction(numbers[i], &usual, NULL);
    }
    caught = 0;
}

const char *interrupt_name(void) { return caught == SIGINT ? "Ctrl-C" : "a termination signal"; }
