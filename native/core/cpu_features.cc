#include "core/cpu_features.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

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

// Least first within an architecture. What each kernel file is compiled for: native/CMakeLists.txt.
const std::vector<IsaNeeds>& isa_needs() {
  static const std::vector<IsaNeeds> needs = {
      {Isa::kScalar, "any", {}},
      {Isa::kX86Avx2, "x86", {"avx2", "fma", "f16c", "bmi2"}},
      {Isa::kX86Avx512Vnni,
       "x86",
       {"avx2", "fma", "f16c", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"}},
      {Isa::kArmNeon, "arm", {"asimd"}},
      {Isa::kArmNeonDotprod, "arm", {"asimd", "asimddp"}},
  };
  return needs;
}

#if defined(__x86_64__)
constexpr const char* kArchitecture = "x86";

uint64_t xcr0() {
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

struct CpuidBit {
  const char* name;
  int leaf, subleaf, reg, bit;  // reg: 0 eax, 1 ebx, 2 ecx, 3 edx
  uint64_t xcr0_mask;           // state that the operating system must have enabled
};

constexpr uint64_t kYmm = 0x6, kZmm = 0xe6;
// Intel SDM volume 2, CPUID; AMD's leaves agree for these.
constexpr CpuidBit kCpuidBits[] = {
    {"avx", 1, 0, 2, 28, kYmm},       {"avx2", 7, 0, 1, 5, kYmm},
    {"avx512vbmi", 7, 0, 2, 1, kZmm}, {"avx512_vnni", 7, 0, 2, 11, kZmm},
    {"avx512bw", 7, 0, 1, 30, kZmm},  {"avx512dq", 7, 0, 1, 17, kZmm},
    {"avx512f", 7, 0, 1, 16, kZmm},   {"avx512vl", 7, 0, 1, 31, kZmm},
    {"avx_vnni", 7, 1, 0, 4, kYmm},   {"bmi2", 7, 0, 1, 8, 0},
    {"f16c", 1, 0, 2, 29, kYmm},      {"fma", 1, 0, 2, 12, kYmm},
    {"pclmulqdq", 1, 0, 2, 1, 0},     {"sha_ni", 7, 0, 1, 29, 0},
    {"sse4_1", 1, 0, 2, 19, 0},       {"sse4_2", 1, 0, 2, 20, 0},
    {"ssse3", 1, 0, 2, 9, 0},
};

std::vector<std::string> detect() {
  std::vector<std::string> found;
  uint32_t one[4] = {};
  if (!__get_cpuid(1, &one[0], &one[1], &one[2], &one[3])) return found;
  const bool osxsave = (one[2] >> 27) & 1;
  const uint64_t saved = osxsave ? xcr0() : 0;
  for (const CpuidBit& bit : kCpuidBits) {
    uint32_t regs[4] = {};
    if (!__get_cpuid_count(bit.leaf, bit.subleaf, &regs[0], &regs[1], &regs[2], &regs[3])) continue;
    if (((regs[bit.reg] >> bit.bit) & 1) && (saved & bit.xcr0_mask) == bit.xcr0_mask) found.push_back(bit.name);
  }
  return found;
}
#elif defined(__aarch64__)
constexpr const char* kArchitecture = "arm";

struct HwcapBit {
  const char* name;
  unsigned long auxv;
  int bit;
};

// Linux arch/arm64/include/uapi/asm/hwcap.h; the numbers are the kernel's ABI and older headers lack some names.
constexpr HwcapBit kHwcapBits[] = {
    {"asimd", AT_HWCAP, 1}, {"asimddp", AT_HWCAP, 20}, {"asimdhp", AT_HWCAP, 10}, {"bf16", AT_HWCAP2, 14},
    {"crc32", AT_HWCAP, 7}, {"fphp", AT_HWCAP, 9},     {"i8mm", AT_HWCAP2, 13},   {"sha2", AT_HWCAP, 6},
    {"sve", AT_HWCAP, 22},  {"sve2", AT_HWCAP2, 1},
};

std::vector<std::string> detect() {
  std::vector<std::string> found;
  for (const HwcapBit& bit : kHwcapBits) {
    if ((getauxval(bit.auxv) >> bit.bit) & 1) found.push_back(bit.name);
  }
  return found;
}
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

// Whether active includes all of wanted: the same architecture and not beyond it.
bool includes(Isa active, Isa wanted) {
  if (wanted == Isa::kScalar || wanted == active) return true;
  const IsaNeeds& has = needs_of(active);
  const IsaNeeds& needs = needs_of(wanted);
  return std::string(has.architecture) == needs.architecture && needs.features.size() < has.features.size();
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
  if (!includes(active, program_isa)) {
    return Status(StatusCode::kUnsupportedIsa, std::string("needs ") + name_of(program_isa) + ", but only " +
                                                   name_of(active) + " is allowed here (EDGEKIT_ISA or an option)");
  }
  return program_isa;
}

}  // namespace edgekit
