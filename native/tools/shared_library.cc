// libedgekit.so is the whole core, with only the functions of edgekit.h visible; a library target needs one source.
#include "edgekit/edgekit.h"
