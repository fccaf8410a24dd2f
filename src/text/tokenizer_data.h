/* What tokenizer_open.c fills and tokenizer.c uses. */
#ifndef FATHOM_TEXT_TOKENIZER_DATA_H
#define FATHOM_TEXT_TOKENIZER_DATA_H

#include "text/added.h"
#include "text/bpe.h"
#include "text/tokenizer.h"

struct tokenizer {
    size_t n_ids;     /* 1 + the highest id                                           */
    char *bytes;      /* all pieces, one behind the other                             */
    size_t *offsets;  /* [n_ids + 1] where each starts; one without a token is empty  */
    bool *is_special; /* [n_ids]                                                      */
    struct bpe bpe;
    struct added_set added[2]; /* those to be found in the text as it is, and those in what is left, normalised (which
                                  changes nothing here, but the first ones go first)  */
};

#endif
