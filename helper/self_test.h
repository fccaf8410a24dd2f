#ifndef FATHOM_HELPER_SELF_TEST_H
#define FATHOM_HELPER_SELF_TEST_H

/* Enters the sandbox and tries what it must refuse. Prints a line for each; returns the exit status. */
int self_test(void);

#endif
