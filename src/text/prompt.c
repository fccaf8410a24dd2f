#include "text/prompt.h"

#include "text/unicode.h"

#include <string.h>

static const char image[] = "<image>";

enum fathom_status prompt_build(const struct tokenizer *tok, const char *prompt, int32_t bos_id, size_t n_images,
                                const size_t *n_image_tokens, struct tokens *out, struct fathom_err *err)
{
    size_t n = strlen(prompt), n_before = out->n, n_named = 0;
    prompt = text_strip(prompt, &n);
    const char *end = prompt + n, *found;
    for (const char *p = prompt; (found = memmem(p, (size_t)(end - p), image, strlen(image)));
         p = found + strlen(image))
        n_named++;
    if (n_named != n_images)
        return fail(err, FATHOM_EINVAL, "prompt names %zu pictures with %s, but there are %zu", n_named, image,
                    n_images);
    int32_t image_id = tokenizer_find(tok, image);
    if (n_images && image_id < 0)
        return fail(err, FATHOM_EUNSUPPORTED, "the tokenizer has no token %s", image);

    enum fathom_status status = tokens_push(out, bos_id, err);
    for (size_t i = 0; !status && i <= n_images; i++) {
        found = memmem(prompt, (size_t)(end - prompt), image, strlen(image));
        const char *piece_end = found ? found : end;
        status = tokenizer_encode(tok, prompt, (size_t)(piece_end - prompt), true, out, err);
        if (!status && i < n_images)
            status = tokens_repeat(out, image_id, n_image_tokens[i], err);
        prompt = piece_end + (found ? strlen(image) : 0);
    }
    if (status)
        out->n = n_before;
    return status;
}
