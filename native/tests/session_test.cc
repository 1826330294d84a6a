#include "engine/session.h"

#include <memory>
#include <string>
#include <vector>

#include "tests/check.h"
#include "tests/inverter_program.h"

namespace edgekit {
namespace {

std::shared_ptr<const Program> load(const std::string& bytes) {
  auto program = Program::from_memory(bytes.data(), bytes.size(), Isa::kScalar);
  EK_CHECK_MSG(program.is_ok(), program.status().message());
  return program.is_ok() ? program.value() : nullptr;
}

EK_TEST(a_session_runs_again_and_again) {
  constexpr int kWidth = 1000;
  auto session = Session::create(load(test::inverter_program(kWidth)), 2);
  EK_CHECK(session.is_ok());
  std::vector<float> x(kWidth);
  std::vector<uint8_t> y(kWidth);
  for (int i = 0; i < kWidth; ++i) x[static_cast<size_t>(i)] = static_cast<float>(i) * 0.02f - 1.0f;
  EK_CHECK(session.value()->bind_input(0, x.data(), x.size() * sizeof(float)).is_ok());
  EK_CHECK(session.value()->bind_output(0, y.data(), y.size()).is_ok());
  EK_CHECK(session.value()->run().is_ok());
  for (int i = 0; i < 100; ++i) {
    const Session::Use use(*session.value());
    EK_CHECK(use.status().is_ok());
    EK_CHECK(session.value()->bind_input(0, x.data(), x.size() * sizeof(float)).is_ok());
    EK_CHECK(session.value()->run().is_ok());
  }
  for (size_t i = 0; i < x.size(); ++i) EK_CHECK(y[i] == test::inverted(x[i]));
}

EK_TEST(binding_checks_its_arguments) {
  auto session = Session::create(load(test::inverter_program(8)), 1);
  EK_CHECK(session.is_ok());
  Session& held = *session.value();
  alignas(8) char memory[64] = {};
  EK_CHECK(held.run().code() == StatusCode::kInvalidInput);  // nothing is bound yet
  EK_CHECK(held.bind_input(1, memory, 32).code() == StatusCode::kInvalidInput);
  EK_CHECK(held.bind_input(0, memory, 31).code() == StatusCode::kInvalidInput);
  EK_CHECK(held.bind_input(0, nullptr, 32).code() == StatusCode::kInvalidInput);
  EK_CHECK(held.bind_input(0, memory + 1, 32).code() == StatusCode::kInvalidInput);
  EK_CHECK(held.bind_input(0, memory, 32).is_ok());
  EK_CHECK(held.run().message().find("'y'") != std::string::npos);
  EK_CHECK(held.bind_output(0, memory + 33, 8).is_ok());  // bytes need no alignment
  EK_CHECK(held.run().is_ok());
  EK_CHECK(held.select_plan(1).code() == StatusCode::kInvalidInput);
}

EK_TEST(one_use_at_a_time) {
  auto session = Session::create(load(test::inverter_program(8)), 1);
  {
    const Session::Use first(*session.value());
    const Session::Use second(*session.value());
    EK_CHECK(first.status().is_ok());
    EK_CHECK(second.status().code() == StatusCode::kRuntime);
  }
  const Session::Use third(*session.value());
  EK_CHECK(third.status().is_ok());
}

EK_TEST(sessions_outlive_the_callers_program) {
  auto program = load(test::inverter_program(8));
  auto session = Session::create(program, 1);
  program.reset();
  float x[8] = {};
  uint8_t y[8];
  EK_CHECK(session.value()->bind_input(0, x, sizeof(x)).is_ok());
  EK_CHECK(session.value()->bind_output(0, y, sizeof(y)).is_ok());
  EK_CHECK(session.value()->run().is_ok());
  EK_CHECK(y[7] == test::inverted(0.0f));
}

}  // namespace
}  // namespace edgekit
