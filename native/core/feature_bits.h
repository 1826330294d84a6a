// What the registers say in which processors and operating systems name their features, as pure functions.
#ifndef EDGEKIT_CORE_FEATURE_BITS_H_
#define EDGEKIT_CORE_FEATURE_BITS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace edgekit {

// The instruction: false for a leaf that the CPU lacks. regs: eax, ebx, ecx, edx.
using Cpuid = std::function<bool(uint32_t leaf, uint32_t subleaf, uint32_t (&regs)[4])>;

// Features of an x86 CPU whose registers the operating system saves. read_xcr0 is called only where CPUID says that the
// operating system allows it (OSXSAVE).
std::vector<std::string> x86_features(const Cpuid& cpuid, const std::function<uint64_t()>& read_xcr0);

// Features of an ARM CPU by Linux's AT_HWCAP and AT_HWCAP2.
std::vector<std::string> arm_features(uint64_t hwcap, uint64_t hwcap2);

}  // namespace edgekit

#endif  // EDGEKIT_CORE_FEATURE_BITS_H_
