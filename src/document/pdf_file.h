/* A PDF's objects as they are written one after the other, and the table that finds them again. */
#ifndef FATHOM_DOCUMENT_PDF_FILE_H
#define FATHOM_DOCUMENT_PDF_FILE_H

#include "document/writer.h"

struct pdf_file {
    uint64_t *offsets; /* of object i + 1; 0: not written yet */
    size_t n, capacity;
};

void pdf_file_free(struct pdf_file *f);

/* A new object's number; 0: out of memory. */
size_t pdf_new_object(struct pdf_file *f);

/* "N 0 obj" and "endobj" round what is added to w->out between them. */
void pdf_begin_object(struct fathom_writer *w, struct pdf_file *f, size_t number);
void pdf_end_object(struct fathom_writer *w);

/* A whole stream object of these bytes, compressed; dictionary: further entries, may be "". */
enum fathom_status pdf_add_stream(struct fathom_writer *w, struct pdf_file *f, size_t number, const char *dictionary,
                                  const char *bytes, size_t n, struct fathom_err *err);

/* The table, the trailer and the end. */
void pdf_add_end(struct fathom_writer *w, struct pdf_file *f, size_t catalog, size_t info);

#endif
