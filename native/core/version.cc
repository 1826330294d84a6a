#include "program_schema.h"

namespace edgekit {
const char* version_string() { return "0.1.0"; }
}  // namespace edgekit
