// vpdpbusd of AVX-VNNI on x86 CPUs without it, so that tests run the compiled kernels themselves, registers and
// encoding included, and not only portable code in their place.
#ifndef EDGEKIT_TESTS_VNNI_EMULATION_H_
#define EDGEKIT_TESTS_VNNI_EMULATION_H_

#include <cstdint>

namespace edgekit::test {

// From now on the illegal instruction does what it would. False where signals do not show the registers of AVX.
bool emulate_avx_vnni();

// How many instructions were.
int64_t emulated_instructions();

}  // namespace edgekit::test

#endif  // EDGEKIT_TESTS_VNNI_EMULATION_H_
