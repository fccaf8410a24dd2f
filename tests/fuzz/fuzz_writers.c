/* Any model output becomes a well-formed document in every format. */
#include "../document_check.h"
#include "../writers.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t pixels[16 * 8 * 3] = {1, 2, 3};
    char *raw = malloc(size + 1);
    if (!raw)
        return 0;
    memcpy(raw, data, size);
    raw[size] = 0;
    for (int format = FATHOM_MARKDOWN; format <= FATHOM_SEARCHABLE_PDF; format++) {
        struct fathom_page kept = {
            .number = 3, .n_pages = 3, .width = 16, .height = 8, .raw = raw, .width_pt = 9, .height_pt = 5};
        struct fathom_writer_options options = {.file = raw, .model = raw, .figures = "f/"};
        struct fathom_page *page = NULL;
        struct fathom_writer *w = NULL;
        struct strbuf out = {0};
        if (fathom_page_restore(&kept, &page, NULL) == FATHOM_OK &&
            fathom_writer_open((enum fathom_format)format, &options, to_strbuf, &out, &w, NULL) == FATHOM_OK) {
            page->rgb = pixels;
            bool written = fathom_writer_page(w, page, NULL) == FATHOM_OK;
            written = fathom_writer_close(w, NULL) == FATHOM_OK && written;
            if (written && !is_document((enum fathom_format)format, &out))
                __builtin_trap();
        }
        fathom_page_free(page);
        strbuf_free(&out);
    }
    free(raw);
    return 0;
}
