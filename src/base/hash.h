/* A keyed hash for tables over untrusted strings: the key is random, so no file can be made whose strings all fall into
 * one slot. Use it only where the result does not depend on the order of the table. */
#ifndef FATHOM_BASE_HASH_H
#define FATHOM_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct hash_key {
    uint64_t a, b;
};

struct hash_key hash_key_random(void);

static inline uint64_t hash_fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Eight bytes at a time, each folded in by a 64 x 64 -> 128 bit product whose halves are joined. */
static inline uint64_t hash_bytes(struct hash_key key, const char *text, size_t n)
{
    uint64_t h = key.a ^ n, word;
    for (; n > 8; text += 8, n -= 8) {
        memcpy(&word, text, 8);
        h = hash_fold(h ^ word, key.b);
    }
    word = 0;
    memcpy(&word, text, n);
    h = hash_fold(h ^ word, key.b);
    return hash_fold(h ^ key.b, key.a);
}

static inline uint64_t hash_u64(struct hash_key key, uint64_t value) { return hash_fold(value ^ key.a, key.b); }

#endif
