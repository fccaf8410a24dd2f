#include "weights/set.h"

/* Elements tested at once; an early end matters less than a loop that the compiler can vectorise. */
#define CHUNK 4096

/* A float is NaN or infinite when all its exponent bits are set. */
static bool any_16(const uint16_t *x, size_t n, uint16_t exponent)
{
    unsigned found = 0;
    for (size_t i = 0; i < n; i++)
        found |= (x[i] & exponent) == exponent;
    return found;
}

static bool any_32(const uint32_t *x, size_t n)
{
    unsigned found = 0;
    for (size_t i = 0; i < n; i++)
        found |= (x[i] & 0x7f800000u) == 0x7f800000u;
    return found;
}

static bool any_scale(const uint8_t *blocks, size_t n_blocks)
{
    unsigned found = 0;
    for (size_t i = 0; i < n_blocks; i++)
        found |= (blocks[i * Q8_0_BLOCK_BYTES + 1] & 0x7cu) == 0x7cu; /* high byte of the f16 */
    return found;
}

static bool any_8(const uint8_t *x, size_t n, uint8_t nan, uint8_t sign)
{
    unsigned found = 0;
    for (size_t i = 0; i < n; i++)
        found |= (x[i] | sign) == nan;
    return found;
}

static bool chunk_is_bad(const struct tensor *t, size_t first, size_t n)
{
    const uint8_t *at = (const uint8_t *)t->data + dtype_bytes(t->dtype, first);
    switch (t->dtype) {
    case DTYPE_F32: return any_32((const uint32_t *)at, n);
    case DTYPE_F16: return any_16((const uint16_t *)at, n, 0x7c00u);
    case DTYPE_BF16: return any_16((const uint16_t *)at, n, 0x7f80u);
    case DTYPE_Q8_0: return any_scale(at, n / Q8_0_BLOCK);
    case DTYPE_F8_E4M3: return any_8(at, n, 0xff, 0x80);
    case DTYPE_F8_E8M0: return any_8(at, n, 0xff, 0);
    case DTYPE_I32:
    case DTYPE_I64:
    case DTYPE_F4_E2M1:
    case DTYPE_U8:
    case DTYPE_I8: break;
    }
    return false;
}

static bool tensor_is_bad(const struct tensor *t)
{
    size_t n = t->n_dims && t->data ? tensor_elements(t) : 0;
    for (size_t first = 0; first < n; first += CHUNK)
        if (chunk_is_bad(t, first, n - first < CHUNK ? n - first : CHUNK))
            return true;
    return false;
}

bool weights_find_nonfinite(const struct weights *w, const char **name)
{
    for (size_t i = 0; i < w->n; i++)
        if (tensor_is_bad(&w->items[i].tensor)) {
            *name = w->items[i].file_name;
            return true;
        }
    return false;
}
