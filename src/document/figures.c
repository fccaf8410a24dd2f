#include "document/figures.h"

#include "document/kind.h"

#include <stdio.h>
#include <string.h>

size_t fathom_page_figures(const struct fathom_page *page)
{
    size_t n = 0;
    for (size_t i = 0; i < page->n_blocks; i++)
        n += label_is_image(page->blocks[i].label, strlen(page->blocks[i].label));
    return n;
}

void fathom_page_figure_name(const struct fathom_page *page, size_t k, char name[FATHOM_FIGURE_NAME])
{
    if (page->n_pages > 1)
        snprintf(name, FATHOM_FIGURE_NAME, "%zu_%zu.jpg", page->number, k);
    else
        snprintf(name, FATHOM_FIGURE_NAME, "%zu.jpg", k);
}

bool block_bounds(const struct fathom_block *block, struct fathom_box *out)
{
    for (size_t i = 0; i < block->n_boxes; i++) {
        const struct fathom_box *box = &block->boxes[i];
        if (i == 0)
            *out = *box;
        out->x0 = box->x0 < out->x0 ? box->x0 : out->x0;
        out->y0 = box->y0 < out->y0 ? box->y0 : out->y0;
        out->x1 = box->x1 > out->x1 ? box->x1 : out->x1;
        out->y1 = box->y1 > out->y1 ? box->y1 : out->y1;
    }
    return block->n_boxes > 0;
}

void add_folder_url(struct strbuf *out, const char *folder, const struct fathom_page *page)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    for (const char *c = folder; *c; c++) {
        if (strchr(plain, *c))
            strbuf_add(out, c, 1);
        else
            strbuf_addf(out, "%%%02X", (unsigned char)*c);
    }
    if (page->n_pages > 1)
        strbuf_addf(out, "%zu_", page->number);
}

void add_figure_url(struct strbuf *out, const char *folder, const struct fathom_page *page, size_t k)
{
    add_folder_url(out, folder, page);
    strbuf_addf(out, "%zu.jpg", k);
}
