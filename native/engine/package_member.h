// Finds the native program inside a package (.ekpkg), for programs that use the C interface without Python.
// The package is a zip with stored members (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT).
#ifndef EDGEKIT_ENGINE_PACKAGE_MEMBER_H_
#define EDGEKIT_ENGINE_PACKAGE_MEMBER_H_

#include <cstdint>
#include <string>

#include "core/status.h"
#include "program_schema.h"

namespace edgekit {

// A member's bytes inside the package's file.
struct MemberRange {
  std::string name;
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;
};

// Whether the file begins as a zip does; kIo when it can't be read.
Result<bool> is_package(const std::string& path);

// The program of the native variant that runs here within `active`, the best instruction set first; its CRC is checked.
// kInvalidProgram for what is no sound package, kUnsupportedIsa when no variant fits this CPU, kInvalidInput for a
// variant that also has parts for ONNX Runtime.
Result<MemberRange> find_native_program(const std::string& path, Isa active);

}  // namespace edgekit

#endif  // EDGEKIT_ENGINE_PACKAGE_MEMBER_H_
