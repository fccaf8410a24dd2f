/* Pictures beside a document's outputs: figures cut out of its pages, and pages with their boxes drawn. */
#ifndef FATHOM_CLI_PICTURES_H
#define FATHOM_CLI_PICTURES_H

#include <fathom.h>
#include <stdbool.h>

/* Each picture is a file of its own in a folder ("" or with a slash at the end) that is made when it is not there. They
 * say what is wrong and return false; path is the input's, for messages. */
bool pictures_write_figures(const char *folder, const struct fathom_page *page, const char *path);

/* FOLDER/NUMBER.png */
bool pictures_write_overlay(const char *folder, const struct fathom_page *page, const char *path);

/* Makes the folders of a path, up to its last slash. */
bool make_folders(const char *path);

#endif
