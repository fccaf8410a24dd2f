/* PDF documents of our own making, through the helper process. */
#include "decoder_fixture.h"

#include <math.h>
#include <unistd.h>

#include "document/decoder.h"
#include "pdf_file.h"

static enum fathom_status open_file(struct document **out, const struct pdf_file *f, const struct document_options *o,
                                    struct fathom_err *err)
{
    assert_false(f->text.failed);
    write_bytes(dir, "a.pdf", f->text.text, f->text.n);
    char *path = temp_path(dir, "a.pdf");
    enum fathom_status status = document_open(out, decoder, path, o, err);
    free(path);
    if (status == FATHOM_EUNSUPPORTED && strstr(err->message, "built without"))
        skip();
    return status;
}

static struct document *open_ok(const struct pdf_file *f, const struct document_options *o)
{
    struct document *d;
    struct fathom_err err;
    if (open_file(&d, f, o, &err))
        fail_msg("%s", err.message);
    return d;
}

static struct document_page page_ok(struct document *d, size_t number)
{
    struct document_page page;
    struct fathom_err err;
    if (document_page(d, number, &page, &err))
        fail_msg("page %zu: %s", number, err.message);
    return page;
}

static void check_open_fails(const struct pdf_file *f, const struct document_options *o, enum fathom_status status,
                             const char *part)
{
    struct document *d;
    struct fathom_err err = {0};
    enum fathom_status got = open_file(&d, f, o, &err);
    if (got != status || !strstr(err.message, part))
        fail_msg("status %d, '%s'; expected %d and '%s'", got, err.message, status, part);
}

/* ---- where things are ------------------------------------------------------------------------------------------ */

struct bounds {
    double x0, y0, x1, y1;
};

static void widen(struct bounds *b, double x, double y)
{
    b->x0 = fmin(b->x0, x);
    b->y0 = fmin(b->y0, y);
    b->x1 = fmax(b->x1, x);
    b->y1 = fmax(b->y1, y);
}

/* What is red, in the document's coordinates: the corners of every pixel of it. */
static struct bounds red_in_document(const struct document_page *page)
{
    const double *m = page->to_document;
    struct bounds b = {INFINITY, INFINITY, -INFINITY, -INFINITY};
    for (int y = 0; y < page->image.height; y++)
        for (int x = 0; x < page->image.width; x++) {
            const uint8_t *p = page->image.rgb + 3 * ((size_t)y * (size_t)page->image.width + (size_t)x);
            if (p[0] < 200 || p[1] > 60)
                continue;
            widen(&b, m[0] * x + m[2] * y + m[4], m[1] * x + m[3] * y + m[5]);
            widen(&b, m[0] * (x + 1) + m[2] * (y + 1) + m[4], m[1] * (x + 1) + m[3] * (y + 1) + m[5]);
        }
    return b;
}

static void rotation_and_crop(void **state)
{
    (void)state;
    for (int rotate = -90; rotate <= 360; rotate += 90) {
        struct pdf_file f;
        char page[128];
        bool lies = rotate % 180 == 0;
        snprintf(page, sizeof page, "/MediaBox[-10 0 400 500]/CropBox[30 50 330 250]/Rotate %d", rotate);
        pdf_page_file(&f, page, "1 0 0 rg 130 90 40 10 re f");
        pdf_end(&f);
        struct document_options o = usual();
        struct document *d = open_ok(&f, &o);
        struct document_page p = page_ok(d, 1);
        struct bounds b = red_in_document(&p);
        assert_int_equal(p.image.width, lies ? 600 : 400);
        assert_int_equal(p.image.height, lies ? 400 : 600);
        assert_true(p.width_pt == (lies ? 300 : 200) && p.height_pt == (lies ? 200 : 300));
        if (fabs(b.x0 - 130) > 0.6 || fabs(b.y0 - 90) > 0.6 || fabs(b.x1 - 170) > 0.6 || fabs(b.y1 - 100) > 0.6)
            fail_msg("rotated by %d: %g %g %g %g", rotate, b.x0, b.y0, b.x1, b.y1);
        document_page_release(&p);
        document_close(d);
        strbuf_free(&f.text);
    }
}

static void resolution(void **state)
{
    (void)state;
    struct pdf_file f;
    struct document_options o = usual();
    pdf_page_file(&f, "/MediaBox[0 0 200.5 100]", "0 g 10 10 50 50 re f");
    pdf_end(&f);
    o.dpi = 36;
    struct document *d = open_ok(&f, &o);
    struct document_page p = page_ok(d, 1);
    assert_int_equal(p.image.width, 100);
    assert_int_equal(p.image.height, 50);
    assert_true(fabs(p.to_document[0] * 100 - 200.5) < 1e-9);
    assert_null(p.text_layer);
    document_page_release(&p);
    document_close(d);
    strbuf_free(&f.text);
}

/* ---- scans ----------------------------------------------------------------------------------------------------- */

enum { SCAN_W = 60, SCAN_H = 40 };

static void scan_file(struct pdf_file *f, const char *page, const char *content)
{
    uint8_t pixels[SCAN_H][SCAN_W][3];
    char entries[256], dictionary[256];
    for (int y = 0; y < SCAN_H; y++)
        for (int x = 0; x < SCAN_W; x++) {
            pixels[y][x][0] = (uint8_t)(4 * x);
            pixels[y][x][1] = (uint8_t)(5 * y);
            pixels[y][x][2] = (uint8_t)((x ^ y) & 1 ? 255 : 0);
        }
    snprintf(entries, sizeof entries, "/MediaBox[0 0 30 20]/Resources<</XObject<</I 5 0 R>>>>%s", page);
    snprintf(dictionary, sizeof dictionary,
             "/Type/XObject/Subtype/Image/Width %d/Height %d/BitsPerComponent 8/ColorSpace/DeviceRGB", SCAN_W, SCAN_H);
    pdf_page_file(f, entries, content);
    pdf_stream(f, dictionary, pixels, sizeof pixels);
    pdf_end(f);
}

/* A picture over the whole page comes out as it went in: 60 pixels over 30 points are 144 an inch, and stay 60 whatever
 * dpi says. */
static void scan_at_its_own_resolution(void **state)
{
    (void)state;
    struct pdf_file f;
    struct document_options o = usual();
    o.dpi = 300;
    scan_file(&f, "", "q 30 0 0 20 0 0 cm /I Do Q");
    struct document *d = open_ok(&f, &o);
    struct document_page p = page_ok(d, 1);
    assert_int_equal(p.image.width, SCAN_W);
    assert_int_equal(p.image.height, SCAN_H);
    for (int y = 0; y < SCAN_H; y++)
        for (int x = 0; x < SCAN_W; x++) {
            const uint8_t *q = p.image.rgb + 3 * (y * SCAN_W + x);
            if (abs(q[0] - 4 * x) > 1 || abs(q[1] - 5 * y) > 1 || abs(q[2] - ((x ^ y) & 1 ? 255 : 0)) > 1)
                fail_msg("pixel %d, %d is %d %d %d", x, y, q[0], q[1], q[2]);
        }
    document_page_release(&p);
    document_close(d);
    strbuf_free(&f.text);

    scan_file(&f, "/Rotate 90", "q 30 0 0 20 0 0 cm /I Do Q");
    d = open_ok(&f, &o);
    p = page_ok(d, 1);
    assert_int_equal(p.image.width, SCAN_H);
    assert_int_equal(p.image.height, SCAN_W);
    assert_in_range(p.image.rgb[1], 5 * (SCAN_H - 1) - 1, 5 * (SCAN_H - 1) + 1); /* the lower left corner comes first */
    document_page_release(&p);
    document_close(d);
    strbuf_free(&f.text);

    scan_file(&f, "", "q 15 0 0 20 0 0 cm /I Do Q"); /* half the page is not the page */
    d = open_ok(&f, &o);
    p = page_ok(d, 1);
    assert_int_equal(p.image.width, 125);
    document_page_release(&p);
    document_close(d);
    strbuf_free(&f.text);
}

/* ---- text and passwords ----------------------------------------------------------------------------------------- */

static void text_layer(void **state)
{
    (void)state;
    struct pdf_file f;
    struct document_options o = usual();
    pdf_page_file(&f, "/MediaBox[0 0 200 100]/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>",
                  "BT /F 12 Tf 20 50 Td (Hello fathom) Tj ET");
    pdf_end(&f);
    o.text_layer = true;
    struct document *d = open_ok(&f, &o);
    struct document_page p = page_ok(d, 1);
    assert_non_null(p.text_layer);
    assert_non_null(strstr(p.text_layer, "Hello fathom"));
    document_page_release(&p);
    document_close(d);
    strbuf_free(&f.text);
}

static void passwords(void **state)
{
    (void)state;
    struct blob file = blob_read("tests/golden/pictures/encrypted.pdf");
    struct pdf_file f = {.text = {(char *)file.data, file.n, file.n, false}};
    struct document_options o = usual();
    check_open_fails(&f, &o, FATHOM_EPASSWORD, "needs a password");
    o.password = "wrong";
    check_open_fails(&f, &o, FATHOM_EPASSWORD, "the password does not open this PDF");
    o.password = "sesame";
    struct document *d = open_ok(&f, &o);
    assert_int_equal(document_n_pages(d), 1);
    struct document_page p = page_ok(d, 1);
    struct bounds b = red_in_document(&p);
    assert_true(fabs(b.x0 - 20) < 0.6 && fabs(b.y1 - 40) < 0.6);
    document_page_release(&p);
    document_close(d);
    blob_free(&file);
}

/* ---- bad documents ---------------------------------------------------------------------------------------------- */

static void strange_pages(void **state)
{
    (void)state;
    struct document_options o = usual();
    static const char *const boxes[] = {"[0 0 1000000 1000000]",
                                        "[0 0 1000000 1]",
                                        "[0 0 0.001 1000000]",
                                        "[0 0 1e30 1e30]",
                                        "[5 5 5 5]",
                                        "[100 100 0 0]",
                                        "[0 0]",
                                        "null",
                                        "(text)"};
    for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++) {
        struct pdf_file f;
        char page[128];
        struct document_page p;
        struct fathom_err err;
        snprintf(page, sizeof page, "/MediaBox%s", boxes[i]);
        pdf_page_file(&f, page, "0 g 10 10 50 50 re f");
        pdf_end(&f);
        o.limits.max_pixels = 1000 * 1000;
        struct document *d = open_ok(&f, &o);
        if (document_page(d, 1, &p, &err) == FATHOM_OK) {
            assert_true((size_t)p.image.width * (size_t)p.image.height <= o.limits.max_pixels);
            document_page_release(&p);
        } else
            assert_true(err.message[0]);
        document_close(d);
        strbuf_free(&f.text);
    }
}

static void no_pages(void **state)
{
    (void)state;
    struct pdf_file f;
    struct document_options o = usual();
    pdf_begin(&f);
    pdf_object(&f, "<</Type/Catalog/Pages 2 0 R>>");
    pdf_object(&f, "<</Type/Pages/Kids[]/Count 0>>");
    pdf_end(&f);
    check_open_fails(&f, &o, FATHOM_EFORMAT, "pages");
    strbuf_free(&f.text);
    pdf_begin(&f);
    pdf_end(&f);
    check_open_fails(&f, &o, FATHOM_EFORMAT, "");
    strbuf_free(&f.text);
}

/* The second of three pages is no page; the file breaks off before its end. */
static void one_bad_page(void **state)
{
    (void)state;
    struct pdf_file f;
    struct document_options o = usual();
    struct document_page p;
    struct fathom_err err;
    pdf_begin(&f);
    pdf_object(&f, "<</Type/Catalog/Pages 2 0 R>>");
    pdf_object(&f, "<</Type/Pages/Kids[3 0 R 4 0 R 5 0 R]/Count 3>>");
    pdf_object(&f, "<</Type/Page/Parent 2 0 R/MediaBox[0 0 20 20]>>");
    pdf_object(&f, "(no page)");
    pdf_object(&f, "<</Type/Page/Parent 2 0 R/MediaBox[0 0 30 30]>>");
    pdf_end(&f);
    strbuf_cut(&f.text, f.text.n - 12);
    struct document *d = open_ok(&f, &o);
    size_t n_read = 0;
    for (size_t i = 1; i <= document_n_pages(d); i++)
        if (document_page(d, i, &p, &err) == FATHOM_OK) {
            n_read++;
            document_page_release(&p);
        }
    assert_true(n_read >= 2);
    document_close(d);
    strbuf_free(&f.text);
}

/* After 200 pages a new process goes on. */
static void many_pages(void **state)
{
    (void)state;
    enum { N = 420 };
    struct pdf_file f;
    struct document_options o = usual();
    struct strbuf kids = {0};
    pid_t pids[4] = {0};
    size_t n_pids = 0;
    pdf_begin(&f);
    pdf_object(&f, "<</Type/Catalog/Pages 2 0 R>>");
    for (int i = 0; i < N; i++)
        strbuf_addf(&kids, "%d 0 R ", i + 3);
    char *body = NULL;
    assert_true(asprintf(&body, "<</Type/Pages/Count %d/Kids[%s]>>", N, strbuf_text(&kids)) > 0);
    pdf_object(&f, body);
    for (int i = 0; i < N; i++)
        pdf_object(&f, "<</Type/Page/Parent 2 0 R/MediaBox[0 0 8 8]>>");
    pdf_end(&f);
    struct document *d = open_ok(&f, &o);
    assert_int_equal(document_n_pages(d), N);
    for (size_t i = 1; i <= N; i++) {
        struct document_page p = page_ok(d, i);
        document_page_release(&p);
        if (n_pids == 0 || decoder->pid != pids[n_pids - 1]) {
            assert_true(n_pids < 4);
            pids[n_pids++] = decoder->pid;
        }
    }
    assert_int_equal(n_pids, 3);
    document_close(d);
    free(body);
    strbuf_free(&kids);
    strbuf_free(&f.text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rotation_and_crop), TEST(resolution),   TEST(scan_at_its_own_resolution),
        TEST(text_layer),        TEST(passwords),    TEST(strange_pages),
        TEST(no_pages),          TEST(one_bad_page), TEST(many_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
