#include "helper/pdf_place.h"

#include <math.h>
#include <stdbool.h>

/* The lower left corner of the page as it is shown, in user space relative to the crop box, and what one point to the right
 * and one point up on the shown page are there. */
struct frame {
    PopplerPoint origin, right, up;
};

static PopplerPoint minus(PopplerPoint a, PopplerPoint b) { return (PopplerPoint){a.x - b.x, a.y - b.y}; }

static bool is_unit(PopplerPoint p) { return fabs(fabs(p.x) + fabs(p.y) - 1) < 1e-6 && fabs(p.x * p.y) < 1e-6; }

/* poppler's interface for C does not tell a page's /Rotate. But a marked area that is added to a page is given as the page
 * is shown, and kept as the page is stored: three corners of one, read again, are the answer. The page has been drawn
 * already, and the mark is taken off again. */
static bool ask_frame(PopplerDocument *document, PopplerPage *page, struct frame *out)
{
    PopplerRectangle area = {.x1 = 0, .y1 = 0, .x2 = 1, .y2 = 1};
    PopplerQuadrilateral corners = {{0, 0}, {1, 0}, {0, 1}, {1, 1}};
    GArray *given = g_array_new(FALSE, FALSE, sizeof corners);
    g_array_append_val(given, corners);
    PopplerAnnot *mark = poppler_annot_text_markup_new_highlight(document, &area, given);
    poppler_page_add_annot(page, mark);
    GArray *kept = poppler_annot_text_markup_get_quadrilaterals(POPPLER_ANNOT_TEXT_MARKUP(mark));
    bool ok = kept && kept->len == 1;
    if (ok) {
        const PopplerQuadrilateral *q = &g_array_index(kept, PopplerQuadrilateral, 0);
        *out = (struct frame){q->p1, minus(q->p2, q->p1), minus(q->p3, q->p1)};
        ok = is_unit(out->right) && is_unit(out->up);
    }
    poppler_page_remove_annot(page, mark);
    if (kept)
        g_array_unref(kept);
    g_array_unref(given);
    g_object_unref(mark);
    return ok;
}

void pdf_place(PopplerDocument *document, PopplerPage *page, double points_x, double points_y, double out[6])
{
    PopplerRectangle crop;
    struct frame f;
    double width, height;
    poppler_page_get_size(page, &width, &height);
    poppler_page_get_crop_box(page, &crop);
    if (!ask_frame(document, page, &f))
        f = (struct frame){{0, 0}, {1, 0}, {0, 1}};
    /* pixel (x, y) is the point (x points_x, height - y points_y) of the shown page */
    out[0] = f.right.x * points_x;
    out[1] = f.right.y * points_x;
    out[2] = -f.up.x * points_y;
    out[3] = -f.up.y * points_y;
    out[4] = crop.x1 + f.origin.x + f.up.x * height;
    out[5] = crop.y1 + f.origin.y + f.up.y * height;
}
