/* A safetensors file of any bytes: its header, what becomes of its tensors in a set of weights (renamed, split into
 * experts, copied for alignment), and the sizes that a model would take from their shapes. */
#include "fuzz.h"
#include "weights/config_parts.h"
#include "weights/safetensors.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* Looks at the first and the last byte of every tensor. */
static unsigned touch(const struct weights *w)
{
    unsigned sum = 0;
    for (size_t i = 0; i < weights_count(w); i++) {
        const struct weight *weight = weights_at(w, i);
        const uint8_t *data = weight->tensor.data;
        if (weight->tensor.n_dims && weight->bytes)
            sum += data[0] + data[weight->bytes - 1];
    }
    return sum;
}

static void use(const char *path)
{
    struct weights *w;
    struct fathom_err err;
    struct model_config c = config_ocr2_published();
    struct tensor t;
    const char *name;
    if (weights_open_file(&w, path, &err))
        return;
    volatile unsigned sum = touch(w);
    (void)sum;
    weights_find_nonfinite(w, &name);
    config_from_tensors(&c, w, &err);
    for (size_t i = 0; i < weights_count(w); i++)
        weights_get(w, &t, 4, (size_t[]){WEIGHT_ANY, 3, 16, 16}, &err, "%s", weights_at(w, i)->name);
    weights_close(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct safetensors s;
    if (safetensors_parse(&s, data, size, NULL)) /* most inputs end here, without a file */
        return 0;
    safetensors_close(&s);
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0)
        return 0;
    if (write(fd, data, size) == (ssize_t)size) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        use(path);
    }
    close(fd);
    return 0;
}
