/* A decoder process and a folder for each test of documents. */
#ifndef FATHOM_TESTS_DECODER_FIXTURE_H
#define FATHOM_TESTS_DECODER_FIXTURE_H

#include "picture.h" /* before others: cmocka.h has a macro fail() */
#include "support.h"

#include <sys/wait.h>

#include "document/document.h"

static struct decoder *decoder;
static char *dir;

static inline int setup(void **state)
{
    struct fathom_err err;
    (void)state;
    dir = temp_create();
    return decoder_create(&decoder, &err);
}

static inline int teardown(void **state)
{
    (void)state;
    decoder_destroy(decoder);
    temp_remove(dir);
    /* no process is left over */
    return waitpid(-1, NULL, WNOHANG) == -1 ? 0 : -1;
}

static inline struct document_options usual(void) { return (struct document_options){.limits = image_default_limits}; }

#endif
