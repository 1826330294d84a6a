// JSON (RFC 8259) as Python objects, without leniency: no duplicate keys, no NaN, nothing beyond what the text says.
#ifndef EDGEKIT_BINDINGS_STRICT_JSON_H_
#define EDGEKIT_BINDINGS_STRICT_JSON_H_

#include <pybind11/pybind11.h>

#include <cstddef>
#include <string_view>

namespace edgekit {

// Throws ValueError with the reason and the place: malformed, not UTF-8, a key twice, a lone surrogate, a number beyond
// float64 or of more than 100 digits, or nested deeper than 64.
pybind11::object parse_strict_json(std::string_view text);

}  // namespace edgekit

#endif  // EDGEKIT_BINDINGS_STRICT_JSON_H_
