/* Asking for a password. */
#ifndef FATHOM_CLI_PASSWORD_H
#define FATHOM_CLI_PASSWORD_H

/* Asks on the terminal that the program belongs to, without showing what is typed. The caller's, for password_free; NULL
 * when there is no terminal to ask on, nothing was typed, or an interrupt came. */
char *password_ask(const char *path);

/* Overwrites and frees; takes NULL. */
void password_free(char *password);

#endif
