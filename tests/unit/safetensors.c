/* The safetensors reader on files that are right, and on what hostile ones may hold. */
#include "weights/safetensors.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define T(name, dtype, shape, begin, end)                                                                              \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

static void test_reads_every_dtype(void **state)
{
    static const char header[] = "{\"__metadata__\":{\"format\":\"pt\",\"note\":\"q8_1\"}," /* other metadata is free */
        T("i64", "I64", "[1]", "0", "8") "," T("f32", "F32", "[1,2]", "8", "16") "," T(
            "i32", "I32", "[2]", "16",
            "24") "," T("bf16", "BF16", "[2,1]", "24",
                        "28") "," T("f16", "F16", "[1,1,1,2]", "28",
                                    "32") "," T("u8", "U8", "[3]", "32",
                                                "35") "," T("scalar", "U8", "[]", "35",
                                                            "36") "," T("empty", "F32", "[0,7]", "36",
                                                                        "36") "," T("fp8", "F8_E4M3", "[2,2]", "36",
                                                                                    "40") "," T("five", "U8",
                                                                                                "[1,1,1,1,4]", "40",
                                                                                                "44") "," T("new",
                                                                                                            "F4_"
                                                                                                            "UNHEARD_"
                                                                                                            "OF_LONG",
                                                                                                            "[9]", "44",
                                                                                                            "48") "}  "
                                                                                                                  " ";
    static const struct {
        const char *name, *dtype;
        enum dtype as;
        int n_dims;
        size_t shape[4], bytes;
    } expected[] = {
        {"i64", "I64", DTYPE_I64, 1, {1}, 8},
        {"f32", "F32", DTYPE_F32, 2, {1, 2}, 8},
        {"i32", "I32", DTYPE_I32, 1, {2}, 8},
        {"bf16", "BF16", DTYPE_BF16, 2, {2, 1}, 4},
        {"f16", "F16", DTYPE_F16, 4, {1, 1, 1, 2}, 4},
        {"u8", "U8", DTYPE_U8, 1, {3}, 3},
        {"scalar", "U8", DTYPE_U8, 1, {1}, 1},
        {"empty", "F32", DTYPE_F32, 2, {0, 7}, 0},
        {"fp8", "F8_E4M3", DTYPE_F8_E4M3, 2, {2, 2}, 4},
        {"five", "U8", 0, 0, {0}, 4},
        {"new", "F4_UNHEARD_OF_L", 0, 0, {0}, 4},
    };
    uint8_t data[48];
    size_t n;
    struct safetensors s;
    struct fathom_err err;
    (void)state;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)i;
    uint8_t *file = safetensors_bytes(header, data, sizeof data, &n);
    if (safetensors_parse(&s, file, n, &err))
        fail_msg("%s", err.message);
    assert_int_equal(s.n_tensors, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < s.n_tensors; i++) {
        const struct safetensors_tensor *t = safetensors_find(&s, expected[i].name);
        assert_non_null(t);
        assert_string_equal(t->dtype, expected[i].dtype);
        assert_int_equal(t->bytes, expected[i].bytes);
        assert_int_equal(t->tensor.n_dims, expected[i].n_dims);
        if (t->tensor.n_dims)
            assert_int_equal(t->tensor.dtype, expected[i].as);
        assert_memory_equal(t->tensor.shape, expected[i].shape, sizeof t->tensor.shape);
    }
    assert_int_equal(*(const uint8_t *)safetensors_find(&s, "u8")->tensor.data, 32);
    assert_int_equal(safetensors_find(&s, "f32")->tensor.stride[0], 2);
    assert_null(safetensors_find(&s, "U8"));
    assert_null(safetensors_find(&s, "__metadata__"));
    safetensors_close(&s);
    safetensors_close(&s);
    free(file);
}

static void test_q8_0_has_its_true_shape(void **state)
{
    static const char header[] = "{\"__metadata__\":{\"w\":\"q8_0 [2, 64]\"}," T("w", "U8", "[2,68]", "0", "136") "," T(
        "v", "U8", "[2]", "136", "138") "}";
    static const uint8_t data[138];
    size_t n;
    struct safetensors s;
    uint8_t *file = safetensors_bytes(header, data, sizeof data, &n);
    (void)state;
    assert_int_equal(safetensors_parse(&s, file, n, NULL), 0);
    const struct tensor *t = &safetensors_find(&s, "w")->tensor;
    assert_int_equal(t->dtype, DTYPE_Q8_0);
    assert_int_equal(t->shape[0], 2);
    assert_int_equal(t->shape[1], 64);
    assert_int_equal(t->stride[0], 64);
    assert_int_equal(safetensors_find(&s, "v")->tensor.dtype, DTYPE_U8);
    safetensors_close(&s);
    free(file);
}

struct hostile {
    const char *header;
    size_t n_data;
    enum fathom_status status;
    const char *message;
};

static const struct hostile hostiles[] = {
    {"", 0, FATHOM_EFORMAT, NULL},
    {"{", 0, FATHOM_EFORMAT, NULL},
    {"[]", 0, FATHOM_EFORMAT, "header is not an object"},
    {"{\"__metadata__\":[]}", 0, FATHOM_EFORMAT, "__metadata__ is not an object"},
    {"{" T("a", "F32", "[1]", "0", "4") "," T("a", "F32", "[1]", "4", "8") "}", 8, FATHOM_EFORMAT, NULL},
    {"{\"a\":1}", 0, FATHOM_EFORMAT, "tensor 'a' has no dtype"},
    {"{\"a\":{\"dtype\":1,\"shape\":[],\"data_offsets\":[0,0]}}", 0, FATHOM_EFORMAT, "tensor 'a' has no dtype"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,0]}}", 0, FATHOM_EFORMAT, "tensor 'a' has no shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":7,\"data_offsets\":[0,0]}}", 0, FATHOM_EFORMAT, "tensor 'a' has no shape"},
    {"{" T("a", "F32", "[-1]", "0", "4") "}", 4, FATHOM_EFORMAT,
     "tensor 'a' has a dimension that is not a whole number from 0 to 2^63 - 1"},
    {"{" T("a", "F32", "[1.5]", "0", "4") "}", 4, FATHOM_EFORMAT,
     "tensor 'a' has a dimension that is not a whole number from 0 to 2^63 - 1"},
    {"{" T("a", "F32", "[18446744073709551616]", "0", "4") "}", 4, FATHOM_EFORMAT,
     "tensor 'a' has a dimension that is not a whole number from 0 to 2^63 - 1"},
    {"{" T("a", "F32", "[4294967296,4294967296]", "0", "4") "}", 4, FATHOM_EFORMAT,
     "tensor 'a' has a shape whose product overflows"},
    {"{" T("a", "F32", "[4611686018427387904]", "0", "0") "}", 0, FATHOM_EFORMAT,
     "tensor 'a' of dtype F32 and shape [4611686018427387904] has 0 bytes of data"},
    {"{" T("a", "F32", "[2,3]", "0", "8") "}", 8, FATHOM_EFORMAT,
     "tensor 'a' of dtype F32 and shape [2, 3] has 8 bytes of data"},
    {"{" T("a", "F8_E4M3", "[3]", "0", "8") "}", 8, FATHOM_EFORMAT,
     "tensor 'a' of dtype F8_E4M3 and shape [3] has 8 bytes of data"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, FATHOM_EFORMAT,
     "tensor 'a' has no data_offsets of two whole numbers"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, FATHOM_EFORMAT,
     "tensor 'a' has no data_offsets of two whole numbers"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}", 4, FATHOM_EFORMAT,
     "tensor 'a' has no data_offsets of two whole numbers"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":{\"0\":4}}}", 4, FATHOM_EFORMAT,
     "tensor 'a' has no data_offsets of two whole numbers"},
    {"{" T("a", "F32", "[1]", "-4", "0") "}", 4, FATHOM_EFORMAT, "tensor 'a' has no data_offsets of two whole numbers"},
    {"{" T("a", "F32", "[1]", "4", "0") "}", 4, FATHOM_EFORMAT,
     "tensor 'a' has data_offsets [4, 0] outside the 4 bytes of data"},
    {"{" T("a", "F32", "[2]", "0", "8") "}", 7, FATHOM_EFORMAT,
     "tensor 'a' has data_offsets [0, 8] outside the 7 bytes of data"},
    {"{" T("a", "F32", "[1]", "9223372036854775800", "9223372036854775804") "}", 8, FATHOM_EFORMAT,
     "tensor 'a' has data_offsets [9223372036854775800, 9223372036854775804] outside the 8 bytes of data"},
    {"{" T("a", "F32", "[2]", "0", "8") "," T("b", "F32", "[1]", "4", "8") "}", 8, FATHOM_EFORMAT,
     "tensors 'a' and 'b' overlap"},
    {"{" T("a", "F32", "[1]", "0", "4") "," T("b", "F32", "[1]", "8", "12") "}", 12, FATHOM_EFORMAT,
     "4 bytes before tensor 'b' belong to no tensor"},
    {"{" T("a", "F32", "[1]", "0", "4") "}", 5, FATHOM_EFORMAT, "1 bytes at the end belong to no tensor"},
    {"{" T("a\\u0000b", "F32", "[1]", "0", "4") "}", 4, FATHOM_EFORMAT, "tensor name 'a' holds a NUL"},
    {"{" T("a\\nb", "F32", "[1]", "0", "5") "}", 5, FATHOM_EFORMAT,
     "tensor 'a?b' of dtype F32 and shape [1] has 5 bytes of data"},
    {"{\"__metadata__\":{\"b\":\"q8_0 [1, 32]\"}," T("a", "U8", "[1,34]", "0", "34") "}", 34, FATHOM_EFORMAT,
     "__metadata__ names tensor 'b', which is missing"},
    {"{\"__metadata__\":{\"a\":\"q8_0 [1,  32]\"}," T("a", "U8", "[1,34]", "0", "34") "}", 34, FATHOM_EFORMAT,
     "__metadata__ of tensor 'a' is 'q8_0 [1,  32]', expected 'q8_0 [rows, cols]'"},
    {"{\"__metadata__\":{\"a\":\"q8_0 [-1, 32]\"}," T("a", "U8", "[1,34]", "0", "34") "}", 34, FATHOM_EFORMAT,
     "__metadata__ of tensor 'a' is 'q8_0 [-1, 32]', expected 'q8_0 [rows, cols]'"},
    {"{\"__metadata__\":{\"a\":\"q8_0 [1, 64]\"}," T("a", "U8", "[1,34]", "0", "34") "}", 34, FATHOM_EFORMAT,
     "tensor 'a' does not hold the 'q8_0 [1, 64]' of its __metadata__"},
    {"{\"__metadata__\":{\"a\":\"q8_0 [1, 33]\"}," T("a", "U8", "[1,34]", "0", "34") "}", 34, FATHOM_EFORMAT,
     "tensor 'a' does not hold the 'q8_0 [1, 33]' of its __metadata__"},
    {"{\"__metadata__\":{\"a\":\"q8_0 [1, 32]\"}," T("a", "U8", "[34]", "0", "34") "}", 34, FATHOM_EFORMAT,
     "tensor 'a' does not hold the 'q8_0 [1, 32]' of its __metadata__"},
    {"{\"__metadata__\":{\"a\":\"q8_0 [1, 32]\"}," T("a", "BF16", "[1,17]", "0", "34") "}", 34, FATHOM_EFORMAT,
     "tensor 'a' does not hold the 'q8_0 [1, 32]' of its __metadata__"},
    {"{\"__metadata__\":{\"a\":\"q8_0 [1, 576460752303423488]\"}," T("a", "U8", "[1,34]", "0", "34") "}", 34,
     FATHOM_EFORMAT, "tensor 'a' does not hold the 'q8_0 [1, 576460752303423488]' of its __metadata__"},
};

static void test_refuses_hostile_headers(void **state)
{
    static const uint8_t data[64];
    (void)state;
    for (size_t i = 0; i < sizeof hostiles / sizeof *hostiles; i++) {
        const struct hostile *h = &hostiles[i];
        size_t n;
        struct safetensors s;
        struct fathom_err err = {0};
        uint8_t *file = safetensors_bytes(h->header, data, h->n_data, &n);
        enum fathom_status status = safetensors_parse(&s, file, n, &err);
        if (status != h->status || (h->message && strcmp(err.message, h->message)))
            fail_msg("%s gives status %d: %s", h->header, status, err.message);
        if (!h->message)
            assert_memory_equal(err.message, "header: ", 8);
        assert_null(s.tensors);
        free(file);
    }
}

/* Header lengths against the size of the file. */
static void test_refuses_header_lengths(void **state)
{
    static const struct {
        uint64_t length;
        size_t n_file;
        enum fathom_status status;
        const char *message;
    } cases[] = {
        {0, 0, FATHOM_EFORMAT, "0 bytes are too few for a safetensors file"},
        {0, 7, FATHOM_EFORMAT, "7 bytes are too few for a safetensors file"},
        {(uint64_t)1 << 63, 16, FATHOM_ELIMIT, "header of 9223372036854775808 bytes, more than the limit of 100000000"},
        {UINT64_MAX, 16, FATHOM_ELIMIT, "header of 18446744073709551615 bytes, more than the limit of 100000000"},
        {100000001, 16, FATHOM_ELIMIT, "header of 100000001 bytes, more than the limit of 100000000"},
        {100000000, 16, FATHOM_EFORMAT, "header of 100000000 bytes in a file of 16"},
        {9, 16, FATHOM_EFORMAT, "header of 9 bytes in a file of 16"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct safetensors s;
        struct fathom_err err;
        uint8_t *file = calloc(1, cases[i].n_file + 1);
        for (size_t b = 0; b < 8 && b < cases[i].n_file; b++)
            file[b] = (uint8_t)(cases[i].length >> 8 * b);
        assert_int_equal(safetensors_parse(&s, file, cases[i].n_file, &err), cases[i].status);
        assert_string_equal(err.message, cases[i].message);
        free(file);
    }
}

/* A sound file cut at any byte, or with any byte changed, gives an error or tensors inside the file. */
static void test_damage(void **state)
{
    static const char header[] = "{\"__metadata__\":{\"w\":\"q8_0 [2, 64]\"}," T("w", "U8", "[2,68]", "0", "136") "," T(
        "b", "BF16", "[2,2]", "136", "144") "," T("c", "F32", "[1]", "144", "148") "}";
    static const uint8_t data[148];
    size_t n;
    uint8_t *file = safetensors_bytes(header, data, sizeof data, &n);
    (void)state;
    for (size_t cut = 0; cut < n; cut++) {
        struct safetensors s;
        uint8_t *part = malloc(cut + 1);
        memcpy(part, file, cut);
        assert_int_not_equal(safetensors_parse(&s, part, cut, NULL), 0);
        free(part);
    }
    for (size_t at = 0; at < n - sizeof data; at++)
        for (int bit = 0; bit < 8; bit++) {
            struct safetensors s;
            file[at] ^= (uint8_t)(1 << bit);
            if (!safetensors_parse(&s, file, n, NULL))
                for (size_t i = 0; i < s.n_tensors; i++) {
                    const uint8_t *p = s.tensors[i].tensor.data;
                    assert_true(!p || (p >= file && s.tensors[i].bytes <= n && p + s.tensors[i].bytes <= file + n));
                }
            safetensors_close(&s);
            file[at] ^= (uint8_t)(1 << bit);
        }
    free(file);
}

static void test_messages_name_the_file(void **state)
{
    char *dir = temp_create(), *path = temp_path(dir, "x.safetensors"), expected[512];
    struct safetensors s;
    struct fathom_err err;
    (void)state;
    write_safetensors(dir, "x.safetensors", "[]", NULL, 0);
    assert_int_equal(safetensors_open(&s, path, &err), FATHOM_EFORMAT);
    snprintf(expected, sizeof expected, "'%s': header is not an object", path);
    assert_string_equal(err.message, expected);
    write_bytes(dir, "x.safetensors", "", 0);
    assert_int_equal(safetensors_open(&s, path, &err), FATHOM_EFORMAT);
    snprintf(expected, sizeof expected, "'%s': 0 bytes are too few for a safetensors file", path);
    assert_string_equal(err.message, expected);
    free(path);
    temp_remove(dir);
}

static void test_writes_what_it_reads(void **state)
{
    static const struct safetensors_spec specs[] = {
        {"f", DTYPE_F32, 2, {2, 3}},
        {"i", DTYPE_I64, 1, {1}},
        {"a \"quoted\"\\\n name", DTYPE_BF16, 4, {1, 2, 1, 2}},
        {"none", DTYPE_F16, 1, {0}},
        {"q", DTYPE_Q8_0, 2, {3, 64}},
    };
    enum { BYTES = 24 + 8 + 8 + 3 * 68 };
    uint8_t data[BYTES];
    char *dir = temp_create(), *path = temp_path(dir, "x.safetensors");
    struct safetensors_writer *w;
    struct safetensors s;
    struct fathom_err err;
    (void)state;
    for (size_t i = 0; i < BYTES; i++)
        data[i] = (uint8_t)(i * 7);
    assert_int_equal(safetensors_create(&w, path, specs, 5, NULL), 0);
    assert_int_equal(safetensors_append(w, data, 30, NULL), 0);
    assert_int_equal(safetensors_append(w, data + 30, BYTES - 30, NULL), 0);
    assert_int_equal(safetensors_append(w, data, 1, &err), FATHOM_EINVAL);
    assert_int_equal(safetensors_commit(w, NULL), 0);
    if (safetensors_open(&s, path, &err))
        fail_msg("%s", err.message);
    assert_int_equal(s.n_tensors, 5);
    const uint8_t *begin = safetensors_find(&s, "f")->tensor.data;
    assert_memory_equal(begin, data, BYTES);
    assert_int_equal((uintptr_t)begin % 8, 0);
    for (size_t i = 0; i < 5; i++) {
        const struct tensor *t = &safetensors_find(&s, specs[i].name)->tensor;
        assert_int_equal(t->dtype, specs[i].dtype);
        assert_int_equal(t->n_dims, specs[i].n_dims);
        assert_memory_equal(t->shape, specs[i].shape, (size_t)t->n_dims * sizeof *t->shape);
    }
    safetensors_close(&s);

    assert_int_equal(safetensors_create(&w, path, specs, 5, NULL), 0); /* incomplete: the old file stays */
    assert_int_equal(safetensors_commit(w, &err), FATHOM_EINVAL);
    assert_int_equal(safetensors_open(&s, path, NULL), 0);
    safetensors_close(&s);
    const struct safetensors_spec bad = {"q", DTYPE_Q8_0, 2, {3, 33}};
    assert_int_equal(safetensors_create(&w, path, &bad, 1, &err), FATHOM_EINVAL);
    assert_string_equal(err.message, "tensor 'q' cannot be written with this shape");
    free(path);
    temp_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_every_dtype),
        cmocka_unit_test(test_q8_0_has_its_true_shape),
        cmocka_unit_test(test_refuses_hostile_headers),
        cmocka_unit_test(test_refuses_header_lengths),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_messages_name_the_file),
        cmocka_unit_test(test_writes_what_it_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
