/* Prompts and their ids on the OCR tokenizer (spec §5.3). */
#include "text/prompt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define IMAGE 128815

static int open_tokenizer(void **state)
{
    struct tokenizer *tok;
    if (tokenizer_open(&tok, "tests/golden/tokenizer.json", NULL))
        return -1;
    *state = tok;
    return 0;
}

static int close_tokenizer(void **state)
{
    tokenizer_close(*state);
    return 0;
}

static void check(const struct tokenizer *tok, const char *prompt, size_t n_images, const size_t *n_image_tokens,
                  const int32_t *expected, size_t n)
{
    struct tokens out = {0};
    struct fathom_err err;
    if (prompt_build(tok, prompt, 0, n_images, n_image_tokens, &out, &err))
        fail_msg("%s", err.message);
    assert_int_equal(out.n, n);
    assert_memory_equal(out.ids, expected, n * sizeof *expected);
    tokens_free(&out);
}

#define CHECK(prompt, n_images, sizes, ...)                                                                            \
    check(*state, prompt, n_images, (const size_t[]){sizes}, (const int32_t[]){__VA_ARGS__},                           \
          sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

static void test_documented_prompts(void **state)
{
    CHECK("<image>\n<|grounding|>Convert the document to markdown.", 1, 2, 0, IMAGE, IMAGE, 201, 128820, 21842, 270,
          4940, 304, 2121, 7919, 16);
    CHECK("<image>\nFree OCR.", 1, 1, 0, IMAGE, 201, 21431, 126041, 16);
    CHECK("<image>\n<|grounding|>OCR this image.", 1, 1, 0, IMAGE, 201, 128820, 119316, 566, 4609, 16);
    CHECK("<image>\nParse the figure.", 1, 1, 0, IMAGE, 201, 68779, 270, 5991, 16);
    CHECK("<image>\nDescribe this image in detail.", 1, 1, 0, IMAGE, 201, 72188, 566, 4609, 295, 6271, 16);
    CHECK("<image>\nLocate <|ref|>xxxx<|/ref|> in the image.", 1, 1, 0, IMAGE, 201, 26751, 434, 223, 128816, 22694,
          128817, 295, 270, 4609, 16);
}

static void test_white_space_at_the_ends_goes(void **state)
{
    CHECK(" \n<image>\nFree OCR. \n\xc2\x85", 1, 1, 0, IMAGE, 201, 21431, 126041, 16);
    CHECK("  ", 0, 0, 0);
    CHECK("", 0, 0, 0);
    CHECK("Hello", 0, 0, 0, 19923);
}

static void test_several_images(void **state)
{
    const size_t sizes[] = {2, 0, 1};
    const int32_t expected[] = {0, IMAGE, IMAGE, 19923, 223, IMAGE};
    check(*state, "<image>Hello<image> <image>", 3, sizes, expected, 6);
}

static void test_refuses(void **state)
{
    struct tokens out = {0};
    struct fathom_err err;
    size_t sizes[2] = {1, 1};
    assert_int_equal(tokens_push(&out, 42, &err), FATHOM_OK);
    assert_int_equal(prompt_build(*state, "Free OCR.", 0, 1, sizes, &out, &err), FATHOM_EINVAL);
    assert_non_null(strstr(err.message, "<image>"));
    assert_int_equal(prompt_build(*state, "<image><image>", 0, 1, sizes, &out, &err), FATHOM_EINVAL);
    assert_int_equal(prompt_build(*state, "<image>", 0, 2, sizes, &out, &err), FATHOM_EINVAL);
    assert_int_equal(prompt_build(*state, "<image>", 0, 0, NULL, &out, &err), FATHOM_EINVAL);
    sizes[0] = SIZE_MAX;
    assert_int_equal(prompt_build(*state, "<image>", 0, 1, sizes, &out, &err), FATHOM_ELIMIT);
    assert_int_equal(out.n, 1); /* as it was */
    assert_int_equal(out.ids[0], 42);
    tokens_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documented_prompts),
        cmocka_unit_test(test_white_space_at_the_ends_goes),
        cmocka_unit_test(test_several_images),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, open_tokenizer, close_tokenizer);
}
