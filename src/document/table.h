/* The model's HTML tables: which cells there are. Everything that is not table, thead, tbody, tr, td or th is text of a
 * cell. */
#ifndef FATHOM_DOCUMENT_TABLE_H
#define FATHOM_DOCUMENT_TABLE_H

#include "base/err.h"

struct table_cell {
    const char *text; /* without white space at its ends; not escaped, may hold inline tags */
    size_t n;
    size_t row;                /* rows without cells do not count                            */
    size_t group;              /* of rows: a thead or tbody; rows of one follow each other   */
    unsigned rowspan, colspan; /* 1 to 1000; a rowspan stays within its group                */
    bool header;               /* th                                                         */
    bool head;                 /* the group is a thead; only the first may be one            */
};

struct table {
    struct table_cell *cells; /* row by row; they point into the text */
    size_t n_cells, capacity;
};

/* text: from "<table" on. A table within a cell is text of that cell, and so is what stands between cells. Never fails but
 * for memory; linear time, no recursion. */
enum fathom_status table_parse(struct table *t, const char *text, size_t n, struct fathom_err *err);
void table_free(struct table *t);

/* The first "<table" at or after text, as a whole word; end when there is none. */
const char *table_find(const char *text, const char *end);

/* Behind the </table> of the table that begins at text, or end when it is not closed. */
const char *table_end(const char *text, const char *end);

#endif
