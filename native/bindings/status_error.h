// How a Status becomes a Python exception.
#ifndef EDGEKIT_BINDINGS_STATUS_ERROR_H_
#define EDGEKIT_BINDINGS_STATUS_ERROR_H_

#include "core/status.h"

namespace edgekit {

// Raises the class of edgekit.errors that belongs to the code, with the message; does nothing on success. Needs the
// GIL.
void raise_on_error(const Status& status);

}  // namespace edgekit

#endif  // EDGEKIT_BINDINGS_STATUS_ERROR_H_
