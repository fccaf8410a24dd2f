/* Seeing a page: pixels -> views -> vision tokens. */
#ifndef FATHOM_ENGINE_SIGHT_H
#define FATHOM_ENGINE_SIGHT_H

#include "engine/reader.h"

/* What the decoder gets to see, in the context's arena: the caller restores its mark. Several attempts can share it. */
struct sight {
    struct tensor block; /* [vision tokens, dim]        */
    bool tiled;          /* the page was cut into tiles */
    size_t n_views;
    double vision_ms, vision_flop;
    size_t vision_peak_bytes;
};

/* Sees rgb [height, width, 3] in these views. First it is checked that the vision tokens and the prompt will fit the
 * context: FATHOM_ELIMIT says how many they are, before the work is done. */
enum fathom_status sight_take(struct sight *out, const struct reader *reader, const uint8_t *rgb, int width, int height,
                              const struct view_config *views, const char *prompt, struct fathom_err *err);

#endif
