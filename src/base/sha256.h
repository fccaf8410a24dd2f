/* SHA-256 (FIPS 180-4). */
#ifndef FATHOM_BASE_SHA256_H
#define FATHOM_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32

void sha256(uint8_t out[SHA256_BYTES], const void *data, size_t n);

#endif
