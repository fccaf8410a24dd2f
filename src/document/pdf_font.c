#include "document/pdf_font.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

void pdf_font_free(struct pdf_font *f)
{
    for (size_t i = 0; i < sizeof f->cids / sizeof *f->cids; i++)
        free(f->cids[i]);
    free(f->characters);
    memset(f, 0, sizeof *f);
}

static uint16_t add_character(struct pdf_font *f, uint32_t character, uint16_t *slot)
{
    if (f->n == f->capacity) {
        size_t capacity = f->capacity ? 2 * f->capacity : 256;
        uint32_t *characters = realloc(f->characters, capacity * sizeof *characters);
        if (!characters)
            return 0;
        f->characters = characters;
        f->capacity = capacity;
    }
    f->characters[f->n++] = character;
    return *slot = (uint16_t)f->n;
}

uint16_t pdf_font_cid(struct pdf_font *f, uint32_t c)
{
    enum { REPLACEMENT = 0xfffd };
    if (c < 0x20 || (c >= 0x7f && c < 0xa0))
        c = ' ';
    else if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000) || (c & 0xfffe) == 0xfffe)
        c = REPLACEMENT;
    uint16_t **page = &f->cids[c / 256];
    if (!*page && !(*page = calloc(256, sizeof **page)))
        return 0;
    uint16_t *slot = &(*page)[c % 256];
    if (*slot)
        return *slot;
    /* The last number is kept for the character that stands for all others. */
    if (f->n >= PDF_FONT_MAX - 1 && c != REPLACEMENT)
        return pdf_font_cid(f, REPLACEMENT);
    return add_character(f, c, slot);
}

int pdf_character_width(uint32_t c)
{
    bool wide = (c >= 0x1100 && c < 0x1160) || (c >= 0x2e80 && c < 0xa4d0) || (c >= 0xac00 && c < 0xd7a4) ||
                (c >= 0xf900 && c < 0xfb00) || (c >= 0xfe30 && c < 0xfe70) || (c >= 0xff01 && c < 0xff61) ||
                (c >= 0x1f300 && c < 0x1fb00) || (c >= 0x20000 && c < 0x40000);
    return wide ? 1000 : 500;
}

void pdf_font_add_to_unicode(const struct pdf_font *f, struct strbuf *out)
{
    strbuf_adds(out, "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n"
                     "/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def\n"
                     "/CMapName /Adobe-Identity-UCS def\n/CMapType 2 def\n"
                     "1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n");
    for (size_t i = 0; i < f->n; i++) {
        uint32_t c = f->characters[i];
        if (i % 100 == 0) /* more than 100 in a section are not allowed */
            strbuf_addf(out, "%zu beginbfchar\n", f->n - i < 100 ? f->n - i : 100);
        if (c < 0x10000)
            strbuf_addf(out, "<%04zX> <%04X>\n", i + 1, (unsigned)c);
        else
            strbuf_addf(out, "<%04zX> <%04X%04X>\n", i + 1, (unsigned)(0xd800 + ((c - 0x10000) >> 10)),
                        (unsigned)(0xdc00 + ((c - 0x10000) & 0x3ff)));
        if (i % 100 == 99 || i + 1 == f->n)
            strbuf_adds(out, "endbfchar\n");
    }
    strbuf_adds(out, "endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n");
}

void pdf_font_add_widths(const struct pdf_font *f, struct strbuf *out)
{
    for (size_t i = 0; i < f->n; i++) {
        size_t first = i;
        if (pdf_character_width(f->characters[i]) == 500)
            continue;
        while (i + 1 < f->n && pdf_character_width(f->characters[i + 1]) == 1000)
            i++;
        strbuf_addf(out, "%zu %zu 1000\n", first + 1, i + 1);
    }
}

void pdf_font_add_glyphs(const struct pdf_font *f, struct strbuf *out)
{
    strbuf_add(out, "\0\0", 2);
    for (size_t i = 0; i < f->n; i++)
        strbuf_add(out, pdf_character_width(f->characters[i]) == 1000 ? "\0\2" : "\0\1", 2);
}

/* ---- the font file ------------------------------------------------------------------------------------------- */

static uint32_t big_endian(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void add_u32(struct strbuf *out, uint32_t value)
{
    const char bytes[4] = {(char)(value >> 24), (char)(value >> 16), (char)(value >> 8), (char)value};
    strbuf_add(out, bytes, 4);
}

/* Tables in the order of their names, as the format wants; each ends on four bytes. */
void pdf_font_add_program(struct strbuf *out)
{
    static const uint8_t glyf[4] = {0}, loca[8] = {0};
    static const uint8_t head[54] = {
        0,    1,    0,    0,    0, 1,    0, 0,    0, 0, 0, 0, /* versions; the sum of the whole is not needed in a PDF */
        0x5f, 0x0f, 0x3c, 0xf5, 0, 3,    3, 0xe8,             /* magic, flags, 1000 units */
        0,    0,    0,    0,    0, 0,    0, 0,    0, 0, 0, 0, 0, 0, 0, 0, /* dates */
        0,    0,    0xff, 0x38, 3, 0xe8, 3, 0x20,                         /* from (0, -200) to (1000, 800) */
        0,    0,    0,    8,    0, 2,    0, 0,    0, 0,                   /* style, least size, direction, short loca */
    };
    static const uint8_t hhea[36] = {
        0,        1, 0,        0, 3, 0x20, 0xff, 0x38, 0, 0, 3, 0xe8, /* ascent 800, descent -200, widest 1000 */
        [18] = 0, 1, [34] = 0, 3,                                     /* upright caret; three widths */
    };
    static const uint8_t hmtx[12] = {1, 0xf4, 0, 0, 1, 0xf4, 0, 0, 3, 0xe8, 0, 0};
    static const uint8_t maxp[32] = {0, 1, 0, 0, 0, 3, [15] = 1};
    static const struct {
        const char *name;
        const uint8_t *bytes;
        uint32_t n;
    } tables[] = {
        {"glyf", glyf, sizeof glyf}, {"head", head, sizeof head}, {"hhea", hhea, sizeof hhea},
        {"hmtx", hmtx, sizeof hmtx}, {"loca", loca, sizeof loca}, {"maxp", maxp, sizeof maxp},
    };
    const size_t n_tables = sizeof tables / sizeof *tables;
    uint32_t at = 12 + 16 * (uint32_t)n_tables;
    strbuf_add(out, "\0\1\0\0\0\6\0\x40\0\2\0\x20", 12);
    for (size_t i = 0; i < n_tables; i++) {
        uint32_t sum = 0, padded = (tables[i].n + 3) / 4 * 4;
        uint8_t bytes[64] = {0};
        memcpy(bytes, tables[i].bytes, tables[i].n);
        for (uint32_t k = 0; k < padded; k += 4)
            sum += big_endian(bytes + k);
        strbuf_add(out, tables[i].name, 4);
        add_u32(out, sum);
        add_u32(out, at);
        add_u32(out, tables[i].n);
        at += padded;
    }
    for (size_t i = 0; i < n_tables; i++) {
        strbuf_add(out, (const char *)tables[i].bytes, tables[i].n);
        strbuf_add(out, "\0\0\0", (4 - tables[i].n % 4) % 4);
    }
}
