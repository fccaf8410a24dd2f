/* PNG: every colour type, depth and interlacing against the samples they were written from. */
#include "picture.h"

#include <math.h>

static int setup(void **state)
{
    struct blob *plain = malloc(sizeof *plain);
    *plain = png_plain(3, 2, 77);
    *state = plain;
    return 0;
}

static int teardown(void **state)
{
    struct blob *plain = *state;
    blob_free(plain);
    free(plain);
    return 0;
}

static unsigned noise(unsigned i)
{
    i = (i + 1) * 2654435761u;
    return i ^ i >> 15;
}

/* What a sample of the given depth is in 8 bits. */
static unsigned to_u8(unsigned v, const struct png_spec *p, enum fathom_alpha alpha)
{
    if (p->depth < 16)
        return v * 255 / ((1u << p->depth) - 1);
    if (alpha == FATHOM_ALPHA_WHITE)
        return (unsigned)lround(v / 257.0);
    return p->type == 0 ? (v > 255 ? 255 : v) : v / 256;
}

static void expect_pixel(unsigned rgb[3], const struct png_spec *p, const uint16_t *s, enum fathom_alpha mode)
{
    unsigned alpha = 255;
    int n_colours = p->type == 2 || p->type == 6 ? 3 : 1;
    for (int c = 0; c < 3; c++)
        rgb[c] = p->type == 3 ? p->palette.data[3 * s[0] + c] : to_u8(s[n_colours == 3 ? c : 0], p, mode);
    if (p->type == 4 || p->type == 6)
        alpha = to_u8(s[n_colours], p, mode);
    else if (p->type == 3 && s[0] < p->trns.n)
        alpha = p->trns.data[s[0]];
    else if (p->type != 3 && p->trns.n) {
        bool same = true;
        for (int c = 0; c < n_colours; c++)
            same = same && s[c] == (unsigned)p->trns.data[2 * c] * 256 + p->trns.data[2 * c + 1];
        alpha = same ? 0 : 255;
    }
    if (mode == FATHOM_ALPHA_WHITE)
        for (int c = 0; c < 3; c++)
            rgb[c] = (unsigned)floor((rgb[c] * alpha + 255 * (255 - alpha)) / 255.0 + 0.5 - 1e-9);
}

static void check(const struct png_spec *p, enum fathom_alpha mode)
{
    struct blob file = png_file(p);
    struct image image = decode_ok(&file, mode);
    int channels = png_channels(p->type);
    assert_int_equal(image.width, p->w);
    assert_int_equal(image.height, p->h);
    for (int i = 0; i < p->w * p->h; i++) {
        unsigned want[3];
        expect_pixel(want, p, p->samples + i * channels, mode);
        for (int c = 0; c < 3; c++)
            if (image.rgb[3 * i + c] != want[c])
                fail_msg("type %d depth %d %s %d x %d alpha %d: pixel %d channel %d is %d, expected %u", p->type,
                         p->depth, p->interlaced ? "interlaced" : "", p->w, p->h, mode, i, c, image.rgb[3 * i + c],
                         want[c]);
    }
    image_free(&image);
    blob_free(&file);
}

static void all_kinds(void **state)
{
    static const int kinds[][2] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
                                   {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
    static const int sizes[][2] = {{1, 1}, {2, 3}, {5, 1}, {1, 6}, {9, 5}, {13, 17}};
    uint16_t samples[13 * 17 * 4];
    need_format(*state);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int variant = 0; variant < 8; variant++) {
                struct png_spec p = {.w = sizes[s][0], .h = sizes[s][1], .type = kinds[k][0], .depth = kinds[k][1]};
                unsigned mask = (1u << p.depth) - 1;
                p.interlaced = variant & 1;
                p.samples = samples;
                for (unsigned i = 0; i < sizeof samples / sizeof *samples; i++)
                    samples[i] = (uint16_t)(noise(i) & mask);
                for (unsigned i = 0; p.type == 3 && i <= mask; i++)
                    for (unsigned c = 0; c < 3; c++)
                        put8(&p.palette, noise(i * 3 + c) & 255);
                bool transparent = variant & 2;
                if (transparent && p.type == 3)
                    for (unsigned i = 0; i <= mask / 2; i++)
                        put8(&p.trns, noise(i + 1000) & 255);
                else if (transparent && p.type < 3)
                    for (int c = 0; c < png_channels(p.type); c++)
                        put16(&p.trns, samples[c]);
                check(&p, variant & 4 ? FATHOM_ALPHA_DROP : FATHOM_ALPHA_WHITE);
                blob_free(&p.palette);
                blob_free(&p.trns);
            }
}

/* The eight orientations of abc/def; the letters are grey values. */
static void orientations(void **state)
{
    static const uint16_t stored[] = {'a', 'b', 'c', 'd', 'e', 'f'};
    static const char *const upright[] = {"abcdef", "cbafed", "fedcba", "defabc",
                                          "adbecf", "daebfc", "fcebda", "cfbead"};
    need_format(*state);
    for (unsigned o = 1; o <= 8; o++)
        for (int big_endian = 0; big_endian < 2; big_endian++) {
            struct png_spec p = {.w = 3, .h = 2, .type = 0, .depth = 8, .samples = stored};
            p.exif = exif_block(big_endian, o);
            struct blob file = png_file(&p);
            struct image image = decode_ok(&file, FATHOM_ALPHA_WHITE);
            assert_int_equal(image.width, o < 5 ? 3 : 2);
            assert_int_equal(image.height, o < 5 ? 2 : 3);
            for (int i = 0; i < 6; i++)
                assert_int_equal(image.rgb[3 * i + 1], upright[o - 1][i]);
            image_free(&image);
            blob_free(&file);
            blob_free(&p.exif);
        }
}

/* More than one block of the turning loop. */
static void large_turn(void **state)
{
    enum { W = 70, H = 45 };
    static uint16_t samples[W * H];
    need_format(*state);
    for (unsigned i = 0; i < W * H; i++)
        samples[i] = (uint16_t)(noise(i) & 255);
    struct png_spec p = {.w = W, .h = H, .type = 0, .depth = 8, .samples = samples, .exif = exif_block(true, 6)};
    struct blob file = png_file(&p);
    struct image image = decode_ok(&file, FATHOM_ALPHA_WHITE);
    for (int y = 0; y < W; y++)
        for (int x = 0; x < H; x++)
            assert_int_equal(image.rgb[3 * (y * H + x)], samples[(H - 1 - x) * W + y]);
    image_free(&image);
    blob_free(&file);
    blob_free(&p.exif);
}

static void broken_exif_is_no_orientation(void **state)
{
    static const uint16_t stored[] = {'a', 'b', 'c', 'd', 'e', 'f'};
    need_format(*state);
    struct blob exif = exif_block(true, 6);
    for (size_t n = 1; n <= exif.n; n++)
        for (size_t at = 0; at < exif.n; at += 1) {
            struct png_spec p = {.w = 3, .h = 2, .type = 0, .depth = 8, .samples = stored};
            p.exif.n = n;
            p.exif.data = malloc(n);
            memcpy(p.exif.data, exif.data, n);
            if (at < n)
                p.exif.data[at] ^= 0xff;
            struct blob file = png_file(&p);
            struct image image = decode_ok(&file, FATHOM_ALPHA_WHITE);
            assert_int_equal(image.width * image.height, 6);
            image_free(&image);
            blob_free(&file);
            blob_free(&p.exif);
        }
    blob_free(&exif);
}

static void truncated(void **state)
{
    need_format(*state);
    assert_truncations_fail(*state);
    struct blob file = png_plain(200, 100, 3);
    struct blob half = {file.data, file.n / 2}, header = {file.data, 20}, unfinished = {file.data, file.n - 5};
    assert_refused(&half, &image_default_limits, FATHOM_EFORMAT, "breaks off in row 41 of 100");
    assert_refused(&header, &image_default_limits, FATHOM_EFORMAT, "breaks off in its header");
    assert_refused(&unfinished, &image_default_limits, FATHOM_EFORMAT, "breaks off before its end chunk");
    blob_free(&file);

    static const uint16_t samples[100 * 100];
    file = png_file(&(struct png_spec){100, 100, 0, 16, true, samples, {0}, {0}, {0}});
    assert_truncations_fail(&(struct blob){file.data, 200});
    file.n = file.n * 9 / 10;
    assert_refused(&file, &image_default_limits, FATHOM_EFORMAT, "of pass 7 of 7");
    blob_free(&file);
}

static void damaged(void **state)
{
    need_format(*state);
    assert_survives_damage(*state);
    uint16_t samples[9 * 5 * 4];
    for (unsigned i = 0; i < sizeof samples / sizeof *samples; i++)
        samples[i] = (uint16_t)(noise(i) & 15);
    struct png_spec p = {.w = 9, .h = 5, .type = 3, .depth = 4, .interlaced = true, .samples = samples};
    for (int i = 0; i < 7 * 3; i++) /* a palette shorter than the samples reach */
        put8(&p.palette, 20);
    p.exif = exif_block(false, 8);
    struct blob file = png_file(&p);
    assert_survives_damage(&file);
    blob_free(&file);
    blob_free(&p.exif);
    blob_free(&p.palette);
}

/* A header is refused before anything is allocated for it. */
static void bombs(void **state)
{
    need_format(*state);
    struct blob file = png_plain(3, 2, 77);
    struct png_spec p = {.w = 3, .h = 2, .type = 2, .depth = 8, .samples = (uint16_t[18]){0}};
    blob_free(&file);
    file = png_file(&p);
    struct {
        uint32_t w, h;
        enum fathom_status status;
        const char *part;
    } cases[] = {
        {13000, 13000, FATHOM_EFORMAT, "cannot hold 13000 x 13000"},
        {0x7fffffff, 0x7fffffff, FATHOM_ELIMIT, "the limit is 65500 a side"},
        {65500, 65500, FATHOM_ELIMIT, "the limit is 178956970 in all"},
        {0, 5, FATHOM_EFORMAT, "broken"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct blob bomb = {0};
        struct blob header = {0};
        put(&bomb, file.data, 8);
        put32(&header, cases[i].w);
        put32(&header, cases[i].h);
        put(&header, file.data + 24, 5);
        put_chunk(&bomb, "IHDR", header.data, header.n);
        put(&bomb, file.data + 33, file.n - 33);
        assert_refused(&bomb, &image_default_limits, cases[i].status, cases[i].part);
        blob_free(&bomb);
        blob_free(&header);
    }
    blob_free(&file);
}

/* Chunks that say nothing about the pixels cost nothing: here 3,000 of them and one of a megabyte. */
static void ornaments(void **state)
{
    need_format(*state);
    const struct blob *plain = *state;
    static const char text[] = "Comment\0x";
    struct blob file = {0}, large = {0};
    put(&file, plain->data, 33);
    for (int i = 0; i < 3000; i++)
        put_chunk(&file, i % 2 ? "tEXt" : "vpAg", text, sizeof text - 1);
    large.data = calloc(1, large.n = 1 << 20);
    put_chunk(&file, "iCCP", large.data, large.n);
    put(&file, plain->data + 33, plain->n - 33);
    struct image image = decode_ok(&file, FATHOM_ALPHA_WHITE);
    assert_int_equal(image.rgb[0], 77);
    image_free(&image);
    blob_free(&large);
    blob_free(&file);
}

static void gamma_is_ignored(void **state)
{
    need_format(*state);
    const struct blob *plain = *state;
    struct blob file = {0};
    put(&file, plain->data, 33);
    put_chunk(&file, "gAMA", "\0\1\x86\xa0", 4); /* 1.0: would brighten */
    put_chunk(&file, "bKGD", "\0\0\0\0\0\0", 6);
    put(&file, plain->data + 33, plain->n - 33);
    struct image image = decode_ok(&file, FATHOM_ALPHA_WHITE);
    assert_int_equal(image.rgb[0], 77);
    image_free(&image);
    blob_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kinds),
        cmocka_unit_test(orientations),
        cmocka_unit_test(large_turn),
        cmocka_unit_test(broken_exif_is_no_orientation),
        cmocka_unit_test(truncated),
        cmocka_unit_test(damaged),
        cmocka_unit_test(bombs),
        cmocka_unit_test(ornaments),
        cmocka_unit_test(gamma_is_ignored),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
