/* What several tests need: folders that go away again, and files in them. Each function fails the running test when the
 * system will not do what it asks. */
#ifndef FATHOM_TESTS_SUPPORT_H
#define FATHOM_TESTS_SUPPORT_H

#include <stddef.h>
#include <stdint.h>

/* A new empty folder; temp_remove deletes it with all it holds and frees the name. */
char *temp_create(void);
void temp_remove(char *dir);

/* dir/name, the caller's to free. */
char *temp_path(const char *dir, const char *name);

void write_bytes(const char *dir, const char *name, const void *data, size_t n);
void write_text(const char *dir, const char *name, const char *text);

/* The bytes of a safetensors file with this header, taken as it is, and n bytes of data; the caller's to free. */
uint8_t *safetensors_bytes(const char *header, const void *data, size_t n, size_t *n_file);
void write_safetensors(const char *dir, const char *name, const char *header, const void *data, size_t n);

#endif
