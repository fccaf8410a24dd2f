#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Sanitized allocators end the program on an impossible request unless told otherwise. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

static void alignment_and_contents(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, (size_t)256 << 20);
    unsigned char *p[200];
    size_t n[200];
    for (int i = 0; i < 200; i++) {
        n[i] = (size_t)i * 7919 % 300000;
        p[i] = arena_alloc(&a, n[i]);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % ARENA_ALIGN, 0);
        memset(p[i], i, n[i]);
    }
    for (int i = 0; i < 200; i++)
        for (size_t j = 0; j < n[i]; j++)
            assert_int_equal(p[i][j], i);
    arena_release(&a);
}

static void limit_is_kept(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 1000 * ARENA_ALIGN);
    assert_null(arena_alloc(&a, 1001 * ARENA_ALIGN));
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_alloc(&a, SIZE_MAX - ARENA_ALIGN));
    assert_null(arena_array(&a, SIZE_MAX / 2, 3));
    assert_int_equal(a.used_bytes, 0);
    assert_non_null(arena_array(&a, 500, ARENA_ALIGN));
    assert_non_null(arena_alloc(&a, 500 * ARENA_ALIGN));
    assert_null(arena_alloc(&a, 0));
    assert_int_equal(a.used_bytes, 1000 * ARENA_ALIGN);
    arena_release(&a);
    assert_non_null(arena_alloc(&a, 0));
    arena_release(&a);
}

static void huge_limit_fails_cleanly(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, SIZE_MAX);
    assert_null(arena_alloc(&a, SIZE_MAX / 2));
    assert_null(arena_alloc(&a, SIZE_MAX - 4096));
    assert_non_null(arena_alloc(&a, 100));
    arena_release(&a);
}

static void restore_returns_to_the_mark(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, (size_t)256 << 20);
    struct arena_mark empty = arena_save(&a);
    char *base = arena_alloc(&a, 1000);
    memset(base, 1, 1000);
    struct arena_mark mark = arena_save(&a);
    for (int i = 0; i < 20; i++)
        assert_non_null(arena_alloc(&a, (size_t)3 << 20));
    assert_int_equal(a.used_bytes, 1024 + 20 * ((size_t)3 << 20));
    assert_int_equal(a.peak_bytes, a.used_bytes);
    arena_restore(&a, mark);
    assert_int_equal(a.used_bytes, 1024);
    assert_int_equal(base[999], 1);
    arena_reset_peak(&a);
    assert_int_equal(a.peak_bytes, 1024);

    /* A kept block is reused and, when too small, replaced without hurting marks below or taken meanwhile. */
    struct arena_mark again = arena_save(&a);
    assert_non_null(arena_alloc(&a, (size_t)100 << 20));
    arena_restore(&a, again);
    char *p = arena_alloc(&a, 64);
    arena_restore(&a, mark);
    assert_ptr_equal(arena_alloc(&a, 64), p);
    arena_restore(&a, empty);
    assert_int_equal(a.used_bytes, 0);
    assert_non_null(a.blocks);
    arena_release(&a);
    assert_null(a.blocks);
}

static void nested_marks(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, (size_t)512 << 20);
    uint32_t seed = 1;
    for (int round = 0; round < 200; round++) {
        struct arena_mark marks[8];
        unsigned char *p[8];
        size_t n[8];
        for (int i = 0; i < 8; i++) {
            seed = seed * 1664525 + 1013904223;
            n[i] = seed >> 11;
            marks[i] = arena_save(&a);
            p[i] = arena_alloc(&a, n[i]);
            assert_non_null(p[i]);
            p[i][0] = p[i][n[i] ? n[i] - 1 : 0] = (unsigned char)i;
        }
        for (int i = 8; i-- > 0;) {
            assert_int_equal(p[i][0], i);
            assert_int_equal(p[i][n[i] ? n[i] - 1 : 0], i);
            arena_restore(&a, marks[i]);
            assert_int_equal(a.used_bytes, marks[i].used_bytes);
        }
        assert_int_equal(a.used_bytes, 0);
    }
    arena_release(&a);
}

static bool back_by_4k(void *ctx, size_t bytes, size_t *backed_bytes)
{
    size_t *limit = ctx;
    if (bytes <= *limit)
        *backed_bytes = (bytes + 4095) / 4096 * 4096;
    return bytes <= *limit;
}

/* Addresses of a device: handed out in order, backed as they are needed, never touched. */
static void region_is_backed_on_demand(void **state)
{
    (void)state;
    size_t memory = 16384;
    char *region = (char *)0x10000000;
    struct arena a;
    arena_init_region(&a, region, 1 << 20, back_by_4k, &memory);
    assert_ptr_equal(arena_alloc(&a, 100), region);
    assert_int_equal(a.backed_bytes, 4096);
    struct arena_mark mark = arena_save(&a);
    assert_ptr_equal(arena_alloc(&a, 8000), region + 128);
    assert_int_equal(a.backed_bytes, 8192);
    assert_null(arena_alloc(&a, 16384)); /* there is no such memory */
    assert_int_equal(a.used_bytes, 128 + 8000);
    arena_restore(&a, mark);
    assert_ptr_equal(arena_alloc(&a, 1), region + 128);
    assert_int_equal(a.peak_bytes, 128 + 8000);
    assert_null(arena_alloc(&a, (size_t)1 << 30));
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alignment_and_contents),
        cmocka_unit_test(limit_is_kept),
        cmocka_unit_test(huge_limit_fails_cleanly),
        cmocka_unit_test(restore_returns_to_the_mark),
        cmocka_unit_test(nested_marks),
        cmocka_unit_test(region_is_backed_on_demand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
