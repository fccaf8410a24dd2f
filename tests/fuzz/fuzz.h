/* The entry point that every fuzz_NAME.c defines, under the name that libFuzzer calls. Returns 0. */
#ifndef FATHOM_TESTS_FUZZ_H
#define FATHOM_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
