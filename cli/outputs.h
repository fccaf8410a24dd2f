/* What is written for one document: a file in every format that was asked for, figures of its Markdown, and pages with
 * their boxes drawn. */
#ifndef FATHOM_CLI_OUTPUTS_H
#define FATHOM_CLI_OUTPUTS_H

#include "formats.h"
#include "inputs.h"
#include "output.h"
#include "replace.h"

#include <fathom.h>

/* What is the same for all documents of a run. */
struct outputs_plan {
    unsigned formats;      /* a set (formats.h)                                                   */
    bool overlay;          /* pages with their boxes, for a folder                                */
    const char *folder;    /* where each document gets files of its own; NULL: see below          */
    const char *file;      /* of the one document in one format; NULL: stream                     */
    struct output *stream; /* one document behind the other; borrowed                             */
    const char *model;     /* named in the outputs                                                */
    const struct fathom_read_options *read;
    bool no_stats;               /* JSON without what differs from run to run                     */
    const struct inputs *inputs; /* which are never written to                                    */
};

/* Whether the pages that are written need their pixels. */
bool outputs_need_pixels(const struct outputs_plan *plan);

struct outputs_format {
    const struct format *format;
    struct fathom_writer_options options;
    struct fathom_writer *writer;
    struct replacement replacement; /* none for the stream */
    struct output *stream;
    char *path; /* owned; NULL for the stream */
    int error;  /* errno of a write that failed */
};

struct outputs {
    const struct outputs_plan *plan;
    const char *path;        /* of the input, borrowed */
    char *base;              /* folder/name; NULL without a folder, and so are these: */
    char *boxes;             /* folder of the pages with their boxes                  */
    char *figures;           /* folder of the figures, NULL: they are not wanted      */
    const char *figures_url; /* the same as links name it, in figures                 */
    struct outputs_format formats[N_FORMATS];
    size_t n;
};

/* All say what is wrong and return false; then outputs_discard has to follow. name: the document's own below the folder
 * (names.h); path: of the input, borrowed until the end. */
bool outputs_open(struct outputs *o, const struct outputs_plan *plan, const char *name, const char *path);
bool outputs_page(struct outputs *o, const struct fathom_page *page);

/* Ends the files and puts them in their places. */
bool outputs_commit(struct outputs *o);

/* Leaves what was there before. */
void outputs_discard(struct outputs *o);

/* Whether every file that a document of this name gets is there already, as far as names tell without its pages. */
bool outputs_exist(const struct outputs_plan *plan, const char *name);

#endif
