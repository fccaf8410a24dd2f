#include "document/format.h"

#include <string.h>

static const struct signature {
    enum format format;
    const char *name;
    size_t at, n;
    const char *bytes;
} signatures[] = {
    {FORMAT_PNG, "PNG", 0, 8, "\x89PNG\r\n\x1a\n"},
    {FORMAT_JPEG, "JPEG", 0, 3, "\xff\xd8\xff"},
    {FORMAT_GIF, "GIF", 0, 4, "GIF8"},
    {FORMAT_TIFF, "TIFF", 0, 4, "II*\0"},
    {FORMAT_TIFF, "TIFF", 0, 4, "MM\0*"},
    {FORMAT_TIFF, "BigTIFF", 0, 4, "II+\0"},
    {FORMAT_TIFF, "BigTIFF", 0, 4, "MM\0+"},
    {FORMAT_FOREIGN, "JPEG XL", 0, 8, "\0\0\0\014JXL "},
    {FORMAT_FOREIGN, "JPEG XL", 0, 2, "\xff\n"},
    {FORMAT_FOREIGN, "JPEG 2000", 0, 8, "\0\0\0\014jP  "},
    {FORMAT_FOREIGN, "JPEG 2000", 0, 4, "\xff\x4f\xff\x51"},
    {FORMAT_FOREIGN, "PAM", 0, 3, "P7\n"},
    {FORMAT_FOREIGN, "DjVu", 0, 8, "AT&TFORM"},
    {FORMAT_FOREIGN, "PostScript", 0, 4, "%!PS"},
    {FORMAT_FOREIGN, "ZIP (or an office document)", 0, 4, "PK\3\4"},
};

static bool has(const uint8_t *head, size_t n, size_t at, const char *bytes, size_t n_bytes)
{
    return n >= at + n_bytes && memcmp(head + at, bytes, n_bytes) == 0;
}

static bool is_pnm(const uint8_t *head, size_t n)
{
    return n >= 3 && head[0] == 'P' && head[1] >= '1' && head[1] <= '6' &&
           (head[2] == '#' || head[2] == ' ' || (head[2] >= '\t' && head[2] <= '\r'));
}

static enum format recognise(const uint8_t *head, size_t n, const char **name)
{
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++)
        if (has(head, n, signatures[i].at, signatures[i].bytes, signatures[i].n)) {
            *name = signatures[i].name;
            return signatures[i].format;
        }
    if (is_pnm(head, n)) {
        *name = "PNM";
        return FORMAT_PNM;
    }
    if (has(head, n, 0, "RIFF", 4) && has(head, n, 8, "WEBP", 4)) {
        *name = "WebP";
        return FORMAT_WEBP;
    }
    if (has(head, n, 4, "ftyp", 4)) {
        *name = "HEIF or AVIF";
        return FORMAT_HEIF;
    }
    /* Two letters are little to go by, so the four reserved bytes must agree: all writers leave them 0. */
    if (has(head, n, 0, "BM", 2) && has(head, n, 6, "\0\0\0\0", 4)) {
        *name = "BMP";
        return FORMAT_BMP;
    }
    if (memmem(head, n < FORMAT_HEAD_BYTES ? n : FORMAT_HEAD_BYTES, "%PDF-", 5)) {
        *name = "PDF";
        return FORMAT_PDF;
    }
    *name = NULL;
    return FORMAT_UNKNOWN;
}

enum format format_of(const uint8_t *head, size_t n)
{
    const char *name;
    return recognise(head, n, &name);
}

const char *format_name(const uint8_t *head, size_t n)
{
    const char *name;
    recognise(head, n, &name);
    return name;
}

enum fathom_status format_fail(const uint8_t *head, size_t n, struct fathom_err *err)
{
    const char *name = format_name(head, n);
    char hex[3 * 8 + 1] = "";
    if (n == 0)
        return fail(err, FATHOM_EFORMAT, "an empty file");
    if (name)
        return fail(err, FATHOM_EUNSUPPORTED, "%s is not supported", name);
    for (size_t i = 0; i < n && i < 8; i++) {
        static const char digits[] = "0123456789abcdef";
        char byte[] = {' ', digits[head[i] >> 4], digits[head[i] & 15]};
        memcpy(hex + 3 * i, byte, 3);
    }
    return fail(err, FATHOM_EFORMAT, "not a picture or PDF: begins with%s", hex);
}
