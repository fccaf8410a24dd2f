#include "fathom.h"

const char *fathom_version(void) { return FATHOM_VERSION; }
