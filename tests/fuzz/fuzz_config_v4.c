/* A DeepSeek-V4 config.json of any bytes; what is accepted has sizes that a state can be made of. */
#include <stdlib.h>

#include "fuzz.h"
#include "nn/v4_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct v4_config c;
    struct fathom_err err;
    struct v4_state *s;
    if (v4_config_parse(&c, (const char *)data, size, &err))
        return 0;
    s = malloc(sizeof *s);
    if (s && !v4_state_create(s, &c, 100, &err))
        v4_state_release(s);
    free(s);
    return 0;
}
