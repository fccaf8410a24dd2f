#include "base/hash.h"

#include <sys/random.h>
#include <time.h>

struct hash_key hash_key_random(void)
{
    struct hash_key key;
    if (getrandom(&key, sizeof key, GRND_NONBLOCK) != (ssize_t)sizeof key) {
        /* Early in boot or under a strict sandbox: less random, still not known to who wrote the file. */
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        key.a = (uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15u ^ (uint64_t)(uintptr_t)&key;
        key.b = (uint64_t)now.tv_sec * 0xbf58476d1ce4e5b9u ^ (uint64_t)(uintptr_t)&now;
    }
    key.a |= 1; /* a zero factor would fold everything to zero */
    key.b |= 1;
    return key;
}
