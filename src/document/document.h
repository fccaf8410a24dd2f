/* A file as pages of pixels. All hostile bytes are decoded in the sandboxed helper process (helper/); PPM needs none. The
 * environment names the helper (FATHOM_HELPER) and how many seconds it has for a page (FATHOM_HELPER_TIMEOUT, 120). */
#ifndef FATHOM_DOCUMENT_DOCUMENT_H
#define FATHOM_DOCUMENT_DOCUMENT_H

#include "image/image.h"

/* One decoder process, started when it is first needed and again after its death. Belongs to one thread at a time. */
struct decoder;

enum fathom_status decoder_create(struct decoder **out, struct fathom_err *err);
void decoder_destroy(struct decoder *d); /* ends the process and waits for it; NULL is fine */

struct document_options {
    enum fathom_alpha alpha;
    bool ignore_icc;
    bool text_layer;
    double dpi;           /* 0: 144                  */
    const char *password; /* borrowed; NULL: none    */
    struct image_limits limits;
};

struct document;

/* Opens a file or a pipe, or standard input for "-". The format is told from the first bytes. The decoder is borrowed
 * until close; with several documents open on one decoder, each change between them starts a process. What concerns
 * the whole file fails here: it cannot be opened, is no document, has no page, or wants another password. */
enum fathom_status document_open(struct document **out, struct decoder *decoder, const char *path,
                                 const struct document_options *options, struct fathom_err *err);
void document_close(struct document *d); /* NULL is fine */

size_t document_n_pages(const struct document *d);

struct document_page {
    struct image image;         /* owned, upright                                       */
    double width_pt, height_pt; /* as struct fathom_page says                           */
    double to_document[6];      /* likewise                                             */
    char *text_layer;           /* owned; NULL: none                                    */
    uint8_t *jpeg;              /* owned; the page is exactly this JPEG; NULL: it isn't */
    size_t jpeg_bytes;
};

/* Decodes or draws page `number` (1-based). A failure concerns this page alone, also when the decoder died over it. The
 * message does not name the file. On failure *out is empty. */
enum fathom_status document_page(struct document *d, size_t number, struct document_page *out, struct fathom_err *err);
void document_page_release(struct document_page *page);

#endif
