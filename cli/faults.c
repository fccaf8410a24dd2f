#include "faults.h"

#include "command.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

/* Nothing can be read where the mapping has no page any more, so there is no way back into the engine. Temporary files
 * stay: they hold the text so far. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    static const char line[] = "fathom: a model file changed or could not be read while in use\n";
    static atomic_flag said = ATOMIC_FLAG_INIT;
    (void)context;
    if (info->si_code == BUS_ADRERR) {
        while (atomic_flag_test_and_set(&said))
            pause(); /* another thread met the hole first, and is about to end the program */
        ssize_t ignored = write(STDERR_FILENO, line, sizeof line - 1);
        (void)ignored;
        _exit(EXIT_FAILED);
    }
    signal(number, SIG_DFL); /* a mistake of our own: it comes again on return, and ends as it should */
}

void faults_setup(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}
