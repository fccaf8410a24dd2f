/* UTF-8, and what of it a terminal may be given. */
#ifndef FATHOM_CLI_UTF8_H
#define FATHOM_CLI_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The length of the well-formed character (no surrogates, nothing overlong, at most U+10FFFF) that n > 0 bytes begin
 * with; 0 if there is none. */
size_t utf8_length(const char *s, size_t n);

/* Whether a terminal may show what n > 0 bytes begin with, and its length. It may not: bytes that are no UTF-8, controls
 * (tab and line feed apart), and characters that turn the direction of the text around them, with which a name can pass
 * for another one. */
bool utf8_is_harmless(const char *s, size_t n, size_t *length);

/* A copy for a line on a terminal: what is not harmless, tabs and line feeds included, becomes '?'. The caller's to free;
 * NULL when memory is short. */
char *utf8_printable(const char *s);

#endif
