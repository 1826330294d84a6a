// A small program for tests: y = 255 - quantize(x), with x f32 [width] and y u8 [width]; and a package that holds it.
#ifndef EDGEKIT_TESTS_INVERTER_PROGRAM_H_
#define EDGEKIT_TESTS_INVERTER_PROGRAM_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "program_schema.h"

namespace edgekit::test {

// The bytes of program.ekn. Quantization: scale 0.0625, zero point 8.
std::string inverter_program(int width, Isa isa = Isa::kScalar);

// What it computes for one x.
uint8_t inverted(float x);

// A zip with stored members, in the order given.
std::string zip_of(const std::vector<std::pair<std::string, std::string>>& members);

// A file in the temporary folder, gone when this goes.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& bytes);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace edgekit::test

#endif  // EDGEKIT_TESTS_INVERTER_PROGRAM_H_
