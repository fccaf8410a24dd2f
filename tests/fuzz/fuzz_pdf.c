/* PDF: whatever the bytes, each page gives pixels within the limits or an error with a message. Pages are small, so that
 * the parser is tried and not the painter. */
#include "fuzz.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "helper/pdf.h"

/* LeakSanitizer asks for this. poppler loses some memory of broken documents and of marks that are taken off again; the
 * helper ends after 200 pages for such reasons. What our own code loses is still found. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libpoppler\nleak:libstdc++\nleak:libcairo\nleak:libfontconfig\nleak:libglib\nleak:libgobject\n";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MAX_PAGES = 3, MAX_PIXELS = 1 << 12 };
    const struct document_options options = {
        .text_layer = true,
        .dpi = 18,
        .limits = {.max_file_bytes = 1 << 20, .max_pixels = MAX_PIXELS, .max_side = 1 << 10, .max_work_bytes = 1 << 22},
    };
    struct fathom_err err = {0};
    struct pdf *pdf;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    if (pdf_open(&pdf, fd, &options, &err) != FATHOM_OK) {
        if (pdf || !err.message[0])
            abort();
        return 0;
    }
    for (size_t i = 1; i <= pdf_n_pages(pdf) && i <= MAX_PAGES; i++) {
        struct document_page page;
        if (pdf_page(pdf, i, &page, &err) != FATHOM_OK)
            continue;
        if ((size_t)page.image.width * (size_t)page.image.height > MAX_PIXELS || !page.text_layer)
            abort();
        document_page_release(&page);
    }
    pdf_close(pdf);
    return 0;
}
