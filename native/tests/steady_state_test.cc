// A session that has run once allocates nothing any more. The programs are those that EDGEKIT_TEST_PROGRAMS names,
// separated by colons (tests/native/test_core.py gives every op and a whole network), or a small one.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/cpu_features.h"
#include "engine/session.h"
#include "tests/allocation_count.h"
#include "tests/check.h"
#include "tests/inverter_program.h"

namespace edgekit {
namespace {

// Dense memory for each input and output of the selected plan.
class Bound {
 public:
  explicit Bound(Session& session) {
    const Plan& plan = session.plan();
    for (size_t i = 0; i < plan.inputs.size(); ++i) {
      const uint64_t bytes = plan.buffer_bytes[plan.inputs[i].buffer];
      EK_CHECK(session.bind_input(i, memory(bytes), bytes).is_ok());
    }
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
      const uint64_t bytes = plan.buffer_bytes[plan.outputs[i].buffer];
      EK_CHECK(session.bind_output(i, memory(bytes), bytes).is_ok());
    }
  }

 private:
  std::byte* memory(uint64_t bytes) {
    Result<AlignedBuffer> buffer = AlignedBuffer::allocate(bytes, "test");
    if (!buffer.is_ok()) std::abort();
    buffers_.push_back(std::move(buffer.value()));
    return buffers_.back().data();  // zeros: valid indices, valid floats
  }

  std::vector<AlignedBuffer> buffers_;
};

void check_program(const std::string& name, const std::string& bytes) {
  auto program = Program::from_memory(bytes.data(), bytes.size());
  EK_CHECK_MSG(program.is_ok(), name + ": " + program.status().message());
  if (!program.is_ok()) return;
  for (const int threads : {1, 2}) {
    auto session = Session::create(program.value(), threads);
    EK_CHECK_MSG(session.is_ok(), name + ": " + session.status().message());
    const Bound bound(*session.value());
    for (int i = 0; i < 2; ++i) EK_CHECK_MSG(session.value()->run().is_ok(), name + ": does not run");
    const test::AllocationCount count;
    for (int i = 0; i < 5; ++i) {
      const Session::Use use(*session.value());
      (void)session.value()->run();
    }
    const long allocations = count.now();
    EK_CHECK_MSG(allocations == 0, name + ": " + std::to_string(allocations) + " allocations in 5 runs");
  }
}

EK_TEST(the_count_sees_allocations) {
  const test::AllocationCount count;
  void* volatile plain = std::malloc(10);
  std::free(plain);
  auto owned = std::make_unique<std::vector<int>>(100);
  EK_CHECK(count.now() >= 2);
}

EK_TEST(runs_allocate_nothing) {
  const char* programs = std::getenv("EDGEKIT_TEST_PROGRAMS");
  if (programs == nullptr) return check_program("inverter", test::inverter_program(1000));
  std::stringstream names(programs);
  for (std::string name; std::getline(names, name, ':');) {
    std::ifstream file(name, std::ios::binary);
    EK_CHECK_MSG(file.good(), name);
    check_program(name, std::string(std::istreambuf_iterator<char>(file), {}));
  }
}

}  // namespace
}  // namespace edgekit
