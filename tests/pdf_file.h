/* Small PDF files made by hand. */
#ifndef FATHOM_TESTS_PDF_FILE_H
#define FATHOM_TESTS_PDF_FILE_H

#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"

/* Objects are numbered in the order in which they are added, from 1. */
struct pdf_file {
    struct strbuf text;
    size_t at[1024];
    size_t n;
};

static inline void pdf_begin(struct pdf_file *f)
{
    *f = (struct pdf_file){.n = 0};
    strbuf_addf(&f->text, "%%PDF-1.4\n");
}

static inline void pdf_object(struct pdf_file *f, const char *body)
{
    f->at[f->n++] = f->text.n;
    strbuf_addf(&f->text, "%zu 0 obj\n%s\nendobj\n", f->n, body);
}

/* A stream with n bytes; dictionary: what stands in it beside the length. */
static inline void pdf_stream(struct pdf_file *f, const char *dictionary, const void *bytes, size_t n)
{
    f->at[f->n++] = f->text.n;
    strbuf_addf(&f->text, "%zu 0 obj\n<<%s/Length %zu>>stream\n", f->n, dictionary, n);
    strbuf_add(&f->text, bytes, n);
    strbuf_addf(&f->text, "\nendstream\nendobj\n");
}

/* The table of objects and the trailer; object 1 is the catalogue. */
static inline void pdf_end(struct pdf_file *f)
{
    size_t table = f->text.n;
    strbuf_addf(&f->text, "xref\n0 %zu\n0000000000 65535 f \n", f->n + 1);
    for (size_t i = 0; i < f->n; i++)
        strbuf_addf(&f->text, "%010zu 00000 n \n", f->at[i]);
    strbuf_addf(&f->text, "trailer\n<</Root 1 0 R/Size %zu>>\nstartxref\n%zu\n%%%%EOF\n", f->n + 1, table);
}

/* A document of one page: what stands in the page's dictionary, and what draws it. */
static inline void pdf_page_file(struct pdf_file *f, const char *page, const char *content)
{
    char body[1024];
    pdf_begin(f);
    pdf_object(f, "<</Type/Catalog/Pages 2 0 R>>");
    pdf_object(f, "<</Type/Pages/Kids[3 0 R]/Count 1>>");
    snprintf(body, sizeof body, "<</Type/Page/Parent 2 0 R/Contents 4 0 R%s>>", page);
    pdf_object(f, body);
    pdf_stream(f, "", content, strlen(content));
}

#endif
