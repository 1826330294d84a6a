// ek_fuzz_load: mutates valid programs and loads them, and runs those that the verifier lets through. The checksum is
// made right again, so that the verifier and the ops' own checks are what is tested. Meant for a build with
// EDGEKIT_SANITIZE=address,undefined; the same seed gives the same mutations everywhere.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/crc32.h"
#include "engine/program.h"
#include "engine/session.h"
#include "tools/json_line.h"

namespace edgekit {
namespace {

constexpr uint64_t kMostSessionBytes = 64u << 20;  // what a mutated program may take to be run
constexpr int64_t kMostElements = 4 << 20;         // of all operands of all ops: keeps a run short

using Bytes = std::vector<unsigned char>;
using Random = std::mt19937_64;

size_t below(Random* random, size_t end) { return static_cast<size_t>((*random)() % end); }

// Numbers at which arithmetic goes wrong.
uint64_t interesting(Random* random) {
  constexpr uint64_t kNumbers[] = {0,
                                   1,
                                   2,
                                   3,
                                   63,
                                   64,
                                   65,
                                   127,
                                   128,
                                   255,
                                   256,
                                   0x7fff,
                                   0x8000,
                                   0xffff,
                                   0x10000,
                                   0x7fffffff,
                                   0x80000000,
                                   0xffffffff,
                                   0x100000000,
                                   0x7fc00000,
                                   0x7f800000,
                                   0x7fffffffffffffff,
                                   0x8000000000000000,
                                   UINT64_MAX};
  return kNumbers[below(random, std::size(kNumbers))];
}

// Where to write: mostly in the tables, which are a small part of a file that is mostly weights.
size_t choose_offset(Random* random, const Bytes& bytes) {
  HeaderRecord header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const uint64_t tables = std::clamp<uint64_t>(header.constants_offset, sizeof(header), bytes.size());
  const size_t end = below(random, 8) == 0 ? bytes.size() : static_cast<size_t>(tables);
  return below(random, end);
}

void mutate_once(Random* random, Bytes* bytes) {
  const size_t at = choose_offset(random, *bytes);
  switch (below(random, 5)) {
    case 0:
      (*bytes)[at] ^= static_cast<unsigned char>(1u << below(random, 8));
      break;
    case 1:
      (*bytes)[at] = static_cast<unsigned char>((*random)());
      break;
    case 2: {  // another number in an aligned word of 4 or 8 bytes
      const size_t width = below(random, 2) == 0 ? 4 : 8;
      const size_t start = at / width * width;
      const uint64_t number = interesting(random);
      std::memcpy(bytes->data() + start, &number, std::min(width, bytes->size() - start));
      break;
    }
    case 3: {  // one more or one less
      const size_t start = at / 4 * 4;
      uint32_t word = 0;
      const size_t width = std::min<size_t>(4, bytes->size() - start);
      std::memcpy(&word, bytes->data() + start, width);
      word += below(random, 2) == 0 ? 1 : UINT32_MAX;
      std::memcpy(bytes->data() + start, &word, width);
      break;
    }
    default: {  // a stretch copied from elsewhere
      const size_t from = choose_offset(random, *bytes);
      const size_t count = std::min({1 + below(random, 64), bytes->size() - at, bytes->size() - from});
      std::memmove(bytes->data() + at, bytes->data() + from, count);
    }
  }
}

// Makes size and checksum right, mostly: a few files keep the wrong ones.
void repair(Random* random, Bytes* bytes) {
  if (bytes->size() < sizeof(HeaderRecord) || below(random, 50) == 0) return;
  HeaderRecord header;
  std::memcpy(&header, bytes->data(), sizeof(header));
  std::memcpy(header.magic, kMagic, sizeof(header.magic));
  header.major = kFormatMajor;
  header.file_bytes = bytes->size();
  header.body_crc32 = crc32(bytes->data() + sizeof(header), bytes->size() - sizeof(header));
  std::memcpy(bytes->data(), &header, sizeof(header));
}

Bytes mutate(Random* random, const Bytes& seed_program) {
  Bytes bytes = seed_program;
  for (size_t count = 1 + below(random, 4); count > 0; --count) mutate_once(random, &bytes);
  if (below(random, 16) == 0) bytes.resize(below(random, bytes.size()));
  repair(random, &bytes);
  return bytes;
}

int64_t total_elements(const Plan& plan) {
  int64_t total = 0;
  for (const PlanOp& op : plan.ops) {
    for (int i = 0; i < op.record->input_count + op.record->output_count; ++i) {
      if (op.operands[i] >= 0) total += plan.tensors[op.operands[i]].element_count();
    }
  }
  return total;
}

// Runs every plan that is small enough, on inputs of random bytes.
bool run_program(Random* random, const std::shared_ptr<const Program>& program) {
  for (const Plan& plan : program->plans()) {
    if (plan.arena_bytes > kMostSessionBytes || total_elements(plan) > kMostElements) return false;
    for (uint64_t bytes : plan.buffer_bytes) {
      if (bytes > kMostSessionBytes) return false;
    }
  }
  Result<std::unique_ptr<Session>> session = Session::create(program, 2);
  if (!session.is_ok()) return false;
  for (size_t p = 0; p < program->plans().size(); ++p) {
    if (!session.value()->select_plan(p).is_ok()) std::abort();
    const Plan& plan = program->plans()[p];
    std::vector<std::unique_ptr<int64_t[]>> buffers;  // exact sizes, so that the sanitizer sees every byte beyond
    const auto buffer = [&](uint64_t bytes) {
      buffers.emplace_back(new int64_t[(bytes + 7) / 8]);
      for (uint64_t i = 0; i < (bytes + 7) / 8; ++i) buffers.back()[i] = static_cast<int64_t>((*random)());
      return buffers.back().get();
    };
    for (size_t i = 0; i < plan.inputs.size(); ++i) {
      const uint64_t bytes = plan.buffer_bytes[plan.inputs[i].buffer];
      if (!session.value()->bind_input(i, buffer(bytes), bytes).is_ok()) std::abort();
    }
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
      const uint64_t bytes = plan.buffer_bytes[plan.outputs[i].buffer];
      if (!session.value()->bind_output(i, buffer(bytes), bytes).is_ok()) std::abort();
    }
    static_cast<void>(session.value()->run());  // an error is as good as success here: only a crash is not
  }
  return true;
}

int fuzz(const std::vector<Bytes>& programs, uint64_t seed, int64_t iterations) {
  Random random(seed);
  int64_t refused = 0, loaded = 0, ran = 0;
  for (int64_t i = 0; i < iterations; ++i) {
    const Bytes bytes = mutate(&random, programs[below(&random, programs.size())]);
    Result<std::shared_ptr<const Program>> program = Program::from_memory(bytes.data(), bytes.size(), Isa::kScalar);
    if (program.is_ok()) {
      ++loaded;
      ran += run_program(&random, program.value());
    } else {
      ++refused;
      const std::string& message = program.status().message();
      if (message.empty() || message.find('\n') != std::string::npos) return 1;
    }
  }
  JsonObject report;
  report.integer("iterations", iterations).integer("refused", refused).integer("loaded", loaded).integer("ran", ran);
  std::printf("%s\n", report.str().c_str());
  return 0;
}

}  // namespace
}  // namespace edgekit

int main(int argument_count, char** arguments) {
  if (argument_count < 4) {
    std::fputs("usage: ek_fuzz_load SEED ITERATIONS PROGRAM.ekn ...\n", stderr);
    return 2;
  }
  std::vector<edgekit::Bytes> programs;
  for (int i = 3; i < argument_count; ++i) {
    std::ifstream file(arguments[i], std::ios::binary);
    programs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    if (programs.back().size() < sizeof(edgekit::HeaderRecord)) {
      std::fprintf(stderr, "ek_fuzz_load: %s: can't be read or is no program\n", arguments[i]);
      return 2;
    }
  }
  return edgekit::fuzz(programs, std::strtoull(arguments[1], nullptr, 10), std::strtoll(arguments[2], nullptr, 10));
}
