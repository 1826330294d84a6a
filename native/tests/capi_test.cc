#include <edgekit/edgekit.h>

#include <string>

#include "core/cpu_features.h"
#include "tests/capi_checks.h"
#include "tests/check.h"
#include "tests/inverter_program.h"

namespace edgekit {
namespace {

using test::inverter_program;
using test::TemporaryFile;
using test::zip_of;

std::string member(Isa isa) { return std::string("variants/native-") + name_of(isa) + "/program.ekn"; }

// Opens a file of these bytes; returns the model's instruction set, or the code and message of the failure.
std::string open_isa(const std::string& bytes, const char* isa = nullptr) {
  const TemporaryFile file(bytes);
  ek_model* model = nullptr;
  const ek_status status = ek_model_open(file.path().c_str(), isa, &model);
  if (status != EK_OK) return std::to_string(status) + ": " + ek_last_error();
  const std::string found = ek_model_isa(model);
  ek_model_free(model);
  return found;
}

bool fails_with(const std::string& outcome, ek_status code, const std::string& message) {
  return outcome.compare(0, 2, std::to_string(code) + ":") == 0 && outcome.find(message) != std::string::npos;
}

EK_TEST(plain_c_uses_a_program) {
  const TemporaryFile file(inverter_program(8));
  const char* problem = run_capi_checks(file.path().c_str());
  EK_CHECK_MSG(problem == nullptr, problem == nullptr ? "" : problem);
}

EK_TEST(plain_c_uses_a_package) {
  const TemporaryFile file(zip_of({{"manifest.json", "{}"}, {member(Isa::kScalar), inverter_program(8)}}));
  const char* problem = run_capi_checks(file.path().c_str());
  EK_CHECK_MSG(problem == nullptr, problem == nullptr ? "" : problem);
}

EK_TEST(the_best_variant_for_this_cpu_is_taken) {
  std::vector<std::pair<std::string, std::string>> members;
  for (int i = 0; i < kIsaCount; ++i) {
    const Isa isa = static_cast<Isa>(i);
    members.emplace_back(member(isa), inverter_program(8, isa));
  }
  EK_CHECK(open_isa(zip_of(members)) == name_of(best_isa()));
  members.erase(members.begin());  // without a scalar variant, scalar kernels take another
  EK_CHECK(open_isa(zip_of(members), "scalar").find("_") != std::string::npos);
}

EK_TEST(packages_that_do_not_fit) {
  const std::string program = inverter_program(8);
  EK_CHECK(fails_with(open_isa(zip_of({{"manifest.json", "{}"}})), EK_INVALID_INPUT, "no native variant"));
  const Isa other = std::string(name_of(best_isa())).compare(0, 3, "arm") == 0 ? Isa::kX86Avx2 : Isa::kArmNeon;
  EK_CHECK(
      fails_with(open_isa(zip_of({{member(other), inverter_program(8, other)}})), EK_UNSUPPORTED_ISA, name_of(other)));
  EK_CHECK(fails_with(open_isa(zip_of({{member(Isa::kScalar), program}, {member(Isa::kScalar), program}})),
                      EK_INVALID_PROGRAM, "twice"));
  EK_CHECK(fails_with(open_isa(zip_of({{member(Isa::kScalar), program}, {"variants/native-scalar/part1.onnx", "x"}})),
                      EK_INVALID_INPUT, "ONNX Runtime"));
}

EK_TEST(damaged_packages_are_refused) {
  const std::string package = zip_of({{member(Isa::kScalar), inverter_program(8)}});
  EK_CHECK(open_isa(package) == "scalar");
  for (size_t size = 0; size < package.size(); size += 3) EK_CHECK(open_isa(package.substr(0, size)) != "scalar");
  int accepted = 0;
  for (size_t i = 0; i < package.size(); ++i) {
    std::string damaged = package;
    damaged[i] = static_cast<char>(damaged[i] ^ 0xff);
    accepted += open_isa(damaged) == "scalar";
  }
  EK_CHECK(accepted > 0);    // times, attributes and the like are free
  EK_CHECK(accepted < 120);  // but not the program's bytes
}

}  // namespace
}  // namespace edgekit
