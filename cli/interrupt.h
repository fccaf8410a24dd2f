/* Ctrl-C and termination: the first asks the program to finish what it is writing, the second ends it at once. */
#ifndef FATHOM_CLI_INTERRUPT_H
#define FATHOM_CLI_INTERRUPT_H

#include <stdbool.h>

void interrupt_setup(void);

/* The number of the signal that came, 0 if none did. */
int interrupt_signal(void);

/* Whether it was Ctrl-C. */
bool interrupt_is_key(void);

/* As before interrupt_setup: nothing came, and the next one ends the program. */
void interrupt_reset(void);

/* How a person calls it: "Ctrl-C" or "a termination signal". */
const char *interrupt_name(void);

#endif
