#include "core/cpu_features.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/feature_bits.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace edgekit {
namespace {

struct IsaNeeds {
  Isa isa;
  const char* architecture;
  std::vector<const char*> features;
};

// The preferred ones last within an architecture. What each kernel file is compiled for: native/CMakeLists.txt.
const std::vector<IsaNeeds>& isa_needs() {
  static const std::vector<IsaNeeds> needs = {
      {Isa::kScalar, "any", {}},
      {Isa::kX86Avx2, "x86", {"avx2", "fma", "f16c", "bmi2"}},
      {Isa::kX86AvxVnni, "x86", {"avx2", "fma", "f16c", "bmi2", "avx_vnni"}},
      {Isa::kX86Avx512Vnni,
       "x86",
       {"avx2", "fma", "f16c", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"}},
      {Isa::kArmNeon, "arm", {"asimd"}},
      {Isa::kArmNeonDotprod, "arm", {"asimd", "asimddp"}},
      {Isa::kArmNeonI8mm, "arm", {"asimd", "asimddp", "i8mm"}},
  };
  return needs;
}

#if defined(__x86_64__)
constexpr const char* kArchitecture = "x86";

bool cpuid(uint32_t leaf, uint32_t subleaf, uint32_t (&regs)[4]) {
  return __get_cpuid_count(leaf, subleaf, &regs[0], &regs[1], &regs[2], &regs[3]) != 0;
}

uint64_t xcr0() {
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

std::vector<std::string> detect() { return x86_features(cpuid, xcr0); }
#elif defined(__aarch64__)
constexpr const char* kArchitecture = "arm";
std::vector<std::string> detect() { return arm_features(getauxval(AT_HWCAP), getauxval(AT_HWCAP2)); }
#else
constexpr const char* kArchitecture = "other";
std::vector<std::string> detect() { return {}; }
#endif

const IsaNeeds& needs_of(Isa isa) {
  for (const IsaNeeds& needs : isa_needs()) {
    if (needs.isa == isa) return needs;
  }
  return isa_needs().front();
}

bool needs_all_of(const IsaNeeds& isa, const IsaNeeds& other) {
  return std::all_of(other.features.begin(), other.features.end(), [&](const char* feature) {
    return std::any_of(isa.features.begin(), isa.features.end(),
                       [&](const char* own) { return std::strcmp(own, feature) == 0; });
  });
}

// Bit `other` of row `isa`: see isa_includes().
using Inclusions = std::array<uint32_t, kIsaCount>;

Inclusions all_inclusions() {
  Inclusions rows{};
  for (const IsaNeeds& isa : isa_needs()) {
    for (const IsaNeeds& other : isa_needs()) {
      if (needs_all_of(isa, other)) rows[static_cast<size_t>(isa.isa)] |= 1u << static_cast<uint32_t>(other.isa);
    }
  }
  return rows;
}

}  // namespace

const std::vector<std::string>& cpu_features() {
  static const std::vector<std::string> features = [] {
    std::vector<std::string> found = detect();
    std::sort(found.begin(), found.end());
    return found;
  }();
  return features;
}

bool cpu_has(const char* feature) { return std::binary_search(cpu_features().begin(), cpu_features().end(), feature); }

bool isa_includes(Isa isa, Isa other) {
  static const Inclusions rows = all_inclusions();
  return (rows[static_cast<size_t>(isa)] >> static_cast<uint32_t>(other) & 1) != 0;
}

bool isa_allows(Isa active, Isa wanted) {
  if (wanted == Isa::kScalar || wanted == active) return true;
  if (std::strcmp(needs_of(active).architecture, needs_of(wanted).architecture) != 0) return false;
  return &needs_of(wanted) < &needs_of(active);
}

std::vector<Isa> isas_ascending() {
  std::vector<Isa> isas;
  for (const IsaNeeds& needs : isa_needs()) isas.push_back(needs.isa);
  return isas;
}

Status check_isa_supported(Isa isa) {
  const IsaNeeds& needs = needs_of(isa);
  if (isa != Isa::kScalar && std::string(needs.architecture) != kArchitecture) {
    return {StatusCode::kUnsupportedIsa,
            std::string("needs ") + name_of(isa) + ", but this is a CPU of another architecture"};
  }
  for (const char* feature : needs.features) {
    if (!cpu_has(feature)) {
      return {StatusCode::kUnsupportedIsa, std::string("needs ") + name_of(isa) + ", but this CPU lacks " + feature};
    }
  }
  return Status::ok();
}

Isa best_isa() {
  static const Isa best = [] {
    Isa found = Isa::kScalar;
    for (const IsaNeeds& needs : isa_needs()) {
      if (check_isa_supported(needs.isa).is_ok()) found = needs.isa;
    }
    return found;
  }();
  return best;
}

Result<Isa> parse_isa(const std::string& name) {
  std::string known;
  for (const IsaNeeds& needs : isa_needs()) {
    if (name == name_of(needs.isa)) return needs.isa;
    known += (known.empty() ? "" : ", ") + std::string(name_of(needs.isa));
  }
  return Status(StatusCode::kInvalidInput, "unknown instruction set '" + name + "' (expected one of " + known + ")");
}

Result<Isa> active_isa() {
  const char* forced = std::getenv("EDGEKIT_ISA");
  if (forced == nullptr || *forced == '\0') return best_isa();
  Result<Isa> isa = parse_isa(forced);
  if (!isa.is_ok()) return Status(isa.status().code(), "EDGEKIT_ISA: " + isa.status().message());
  if (Status status = check_isa_supported(isa.value()); !status.is_ok()) {
    return Status(status.code(), "EDGEKIT_ISA: " + status.message());
  }
  return isa;
}

Result<Isa> kernel_isa(Isa program_isa, Isa active) {
  if (active == Isa::kScalar) return Isa::kScalar;
  EK_RETURN_IF_ERROR(check_isa_supported(program_isa));
  if (!isa_allows(active, program_isa)) {
    return Status(StatusCode::kUnsupportedIsa, std::string("needs ") + name_of(program_isa) + ", but only " +
                                                   name_of(active) + " is allowed here (EDGEKIT_ISA or an option)");
  }
  return program_isa;
}

}  // namespace edgekit
