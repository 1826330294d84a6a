// The command line of ek_run.
#ifndef EDGEKIT_TOOLS_EK_RUN_OPTIONS_H_
#define EDGEKIT_TOOLS_EK_RUN_OPTIONS_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "core/status.h"
#include "program_schema.h"

namespace edgekit {

struct EkRunOptions {
  std::string program;
  size_t plan = 0;
  std::optional<Isa> isa;
  int threads = 0;
  int repeat = 1;
  bool layers = false;
  std::map<std::string, std::string> inputs;  // name -> file
  std::string output_dir;                     // empty: outputs are not written
};

inline constexpr char kEkRunUsage[] =
    "usage: ek_run PROGRAM.ekn|PACKAGE.ekpkg [--plan I] [--isa NAME] [--threads N] [--repeat N] [--layers]\n"
    "              --input NAME=FILE.bin ... [--output-dir DIR]\n"
    "Runs a native program on raw little-endian tensors and prints one line of JSON with its timings.\n"
    "example: ek_run detector.ekn --isa scalar --input images=image.bin --output-dir out\n";

// kInvalidInput, with what is wrong, for anything that does not parse.
Result<EkRunOptions> parse_ek_run(int argument_count, char** arguments);

}  // namespace edgekit

#endif  // EDGEKIT_TOOLS_EK_RUN_OPTIONS_H_
