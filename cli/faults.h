/* Signals that would end the program without a word. */
#ifndef FATHOM_CLI_FAULTS_H
#define FATHOM_CLI_FAULTS_H

/* A closed pipe and the limit on the size of a file become errors of the write; a mapped file that shrinks, or that the
 * system cannot read any more, ends the program with one line and EXIT_FAILED. Call once, first. */
void faults_setup(void);

#endif
