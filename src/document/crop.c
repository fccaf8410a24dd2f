/* Figures cut out of the page. */
#include "document/figures.h"
#include "document/kind.h"
#include "image/jpeg_write.h"

#include <string.h>

const struct fathom_block *page_figure(const struct fathom_page *page, size_t k)
{
    for (size_t i = 0; i < page->n_blocks; i++)
        if (label_is_image(page->blocks[i].label, strlen(page->blocks[i].label)) && k-- == 0)
            return &page->blocks[i];
    return NULL;
}

/* At least one pixel, and on the page. */
static void widen(int *low, int *high, int side)
{
    *low = *low < 0 ? 0 : *low < side ? *low : side - 1;
    *high = *high > side ? side : *high > *low ? *high : *low + 1;
}

enum fathom_status block_jpeg(const struct fathom_page *page, const struct fathom_block *block, fathom_write_fn *write,
                              void *user, struct fathom_err *err)
{
    struct fathom_box box;
    if (!page->rgb || page->width < 1 || page->height < 1)
        return fail(err, FATHOM_EINVAL, "page %zu has no pixels to cut a figure from", page->number);
    if (!block_bounds(block, &box))
        return fail(err, FATHOM_EINVAL, "a figure of page %zu has no box", page->number);
    widen(&box.x0, &box.x1, page->width);
    widen(&box.y0, &box.y1, page->height);
    size_t stride = (size_t)page->width * 3;
    const uint8_t *corner = page->rgb + (size_t)box.y0 * stride + (size_t)box.x0 * 3;
    return jpeg_write(corner, stride, box.x1 - box.x0, box.y1 - box.y0, write, user, err);
}

enum fathom_status fathom_page_figure_jpeg(const struct fathom_page *page, size_t k, fathom_write_fn *write, void *user,
                                           struct fathom_err *err)
{
    const struct fathom_block *block = page_figure(page, k);
    if (!block)
        return fail(err, FATHOM_EINVAL, "page %zu has no figure %zu", page->number, k);
    return block_jpeg(page, block, write, user, err);
}
