/* Any model output gives blocks with boxes on the page, and Markdown that is not longer than itself. */
#include "document/layout.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int width = 1240, height = 1754;
    char *raw = malloc(size + 1), *markdown;
    if (!raw)
        return 0;
    memcpy(raw, data, size);
    raw[size] = 0;
    struct layout l;
    if (layout_parse(&l, raw, width, height, NULL) == FATHOM_OK) {
        for (size_t i = 0; i < l.n_blocks; i++) {
            if (!strstr(raw, l.blocks[i].text) || !strstr(raw, l.blocks[i].label))
                __builtin_trap();
            for (size_t k = 0; k < l.blocks[i].n_boxes; k++) {
                const struct fathom_box *b = &l.blocks[i].boxes[k];
                if (b->x0 < 0 || b->x0 > b->x1 || b->x1 > width || b->y0 < 0 || b->y0 > b->y1 || b->y1 > height)
                    __builtin_trap();
            }
        }
    }
    layout_free(&l);
    if (layout_markdown(raw, &markdown, NULL) == FATHOM_OK) {
        if (strlen(markdown) > strlen(raw))
            __builtin_trap();
        free(markdown);
    }
    free(raw);
    return 0;
}
