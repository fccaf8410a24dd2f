/* Landlock: which files can be opened at all. */
#ifndef FATHOM_HELPER_LANDLOCK_H
#define FATHOM_HELPER_LANDLOCK_H

/* Leaves only the folders of fonts, their configuration and poppler's tables of characters to be read. Does nothing where
 * the kernel has no Landlock. Wants PR_SET_NO_NEW_PRIVS before it. */
void landlock_allow_fonts(void);

#endif
