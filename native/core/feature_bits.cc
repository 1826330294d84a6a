#include "core/feature_bits.h"

namespace edgekit {
namespace {

struct CpuidBit {
  const char* name;
  uint32_t leaf, subleaf;
  int reg, bit;        // reg: 0 eax, 1 ebx, 2 ecx, 3 edx
  uint64_t xcr0_mask;  // state that the operating system must have enabled
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

struct HwcapBit {
  const char* name;
  bool second;  // of AT_HWCAP2
  int bit;
};

// Linux arch/arm64/include/uapi/asm/hwcap.h; the numbers are the kernel's ABI and older headers lack some names.
constexpr HwcapBit kHwcapBits[] = {
    {"asimd", false, 1}, {"asimddp", false, 20}, {"asimdhp", false, 10}, {"bf16", true, 14}, {"crc32", false, 7},
    {"fphp", false, 9},  {"i8mm", true, 13},     {"sha2", false, 6},     {"sve", false, 22}, {"sve2", true, 1},
};

// Whether the CPU has a leaf, and of leaf 7 that subleaf: it says itself how many there are.
bool read_leaf(const Cpuid& cpuid, const CpuidBit& bit, uint32_t (&regs)[4]) {
  if (bit.subleaf > 0 && (!cpuid(bit.leaf, 0, regs) || regs[0] < bit.subleaf)) return false;
  return cpuid(bit.leaf, bit.subleaf, regs);
}

}  // namespace

std::vector<std::string> x86_features(const Cpuid& cpuid, const std::function<uint64_t()>& read_xcr0) {
  std::vector<std::string> found;
  uint32_t one[4] = {};
  if (!cpuid(1, 0, one)) return found;
  const bool osxsave = ((one[2] >> 27) & 1) != 0;
  const uint64_t saved = osxsave ? read_xcr0() : 0;
  for (const CpuidBit& bit : kCpuidBits) {
    uint32_t regs[4] = {};
    if (!read_leaf(cpuid, bit, regs)) continue;
    if (((regs[bit.reg] >> bit.bit) & 1) != 0 && (saved & bit.xcr0_mask) == bit.xcr0_mask) found.push_back(bit.name);
  }
  return found;
}

std::vector<std::string> arm_features(uint64_t hwcap, uint64_t hwcap2) {
  std::vector<std::string> found;
  for (const HwcapBit& bit : kHwcapBits) {
    if ((((bit.second ? hwcap2 : hwcap) >> bit.bit) & 1) != 0) found.push_back(bit.name);
  }
  return found;
}

}  // namespace edgekit
