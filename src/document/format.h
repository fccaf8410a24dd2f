/* What a file is, told from its first bytes and never from its name. */
#ifndef FATHOM_DOCUMENT_FORMAT_H
#define FATHOM_DOCUMENT_FORMAT_H

#include "base/err.h"

enum format {
    FORMAT_UNKNOWN,
    FORMAT_PNM, /* PBM, PGM, PPM */
    FORMAT_PNG,
    FORMAT_JPEG,
    FORMAT_GIF,
    FORMAT_BMP,
    FORMAT_TIFF,
    FORMAT_WEBP,
    FORMAT_HEIF,
    FORMAT_PDF,
    FORMAT_FOREIGN, /* known by name alone */
};

/* As many bytes of a file's beginning tell all that can be told: a PDF may have others in front of its header. */
#define FORMAT_HEAD_BYTES 1024

enum format format_of(const uint8_t *head, size_t n);

/* "PNG", "JPEG XL", ...; NULL when nothing is recognised. */
const char *format_name(const uint8_t *head, size_t n);

/* The error for a file that is no document: empty, of a format that is known but not read, or unknown. */
enum fathom_status format_fail(const uint8_t *head, size_t n, struct fathom_err *err);

#endif
