// CPU features from registers that no real machine has, and what follows for instruction sets and kernels.
#include "core/cpu_features.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/feature_bits.h"
#include "kernels/convert/convert.h"
#include "kernels/depthwise/depthwise_q8.h"
#include "kernels/elementwise_q8/elementwise_q8.h"
#include "kernels/gemm/gemm_q8.h"
#include "kernels/roofline/roofline.h"
#include "tests/check.h"

namespace edgekit::test {
namespace {

constexpr uint64_t kSse = 0x3, kYmm = 0x7, kZmm = 0xe7;  // XCR0
constexpr uint32_t kOsxsave = 1u << 27, kAvx = 1u << 28, kF16c = 1u << 29, kFma = 1u << 12;
constexpr uint32_t kAvx2 = 1u << 5, kBmi2 = 1u << 8;
constexpr uint32_t kAvx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // f, dq, bw, vl
constexpr uint32_t kAvx512Vnni = 1u << 11, kAvxVnni = 1u << 4;

// What CPUID and XGETBV say.
struct FakeX86 {
  std::map<std::pair<uint32_t, uint32_t>, std::array<uint32_t, 4>> leaves;
  uint64_t xcr0 = kYmm;
  int xcr0_reads = 0;

  // The features of an Alder Lake.
  FakeX86() {
    leaves[{1, 0}] = {0, 0, kOsxsave | kAvx | kF16c | kFma, 0};
    leaves[{7, 0}] = {1, kAvx2 | kBmi2, 0, 0};
    leaves[{7, 1}] = {kAvxVnni, 0, 0, 0};
  }

  std::vector<std::string> features() {
    const auto cpuid = [this](uint32_t leaf, uint32_t subleaf, uint32_t(&regs)[4]) {
      const auto found = leaves.find({leaf, subleaf});
      if (found == leaves.end()) return false;
      std::copy(found->second.begin(), found->second.end(), regs);
      return true;
    };
    return x86_features(cpuid, [this] {
      ++xcr0_reads;
      return xcr0;
    });
  }
  bool has(const std::string& name) {
    const std::vector<std::string> all = features();
    return std::find(all.begin(), all.end(), name) != all.end();
  }
};

EK_TEST(avx_vnni_needs_its_bit_and_saved_registers) {
  FakeX86 whole;
  for (const char* name : {"avx", "avx2", "avx_vnni", "bmi2", "f16c", "fma"}) EK_CHECK_MSG(whole.has(name), name);
  EK_CHECK(!whole.has("avx512_vnni"));

  FakeX86 without;
  without.leaves[{7, 1}] = {~kAvxVnni, ~0u, ~0u, ~0u};
  EK_CHECK(!without.has("avx_vnni") && without.has("avx2"));

  FakeX86 unsaved;  // the operating system saves xmm only
  unsaved.xcr0 = kSse;
  EK_CHECK(!unsaved.has("avx_vnni") && !unsaved.has("avx2") && unsaved.has("bmi2"));
}

EK_TEST(xcr0_is_not_read_without_osxsave) {
  FakeX86 cpu;
  cpu.leaves[{1, 0}][2] &= ~kOsxsave;  // xgetbv would be an illegal instruction
  EK_CHECK(!cpu.has("avx_vnni") && !cpu.has("avx2"));
  EK_CHECK(cpu.xcr0_reads == 0);
}

EK_TEST(leaves_that_are_not_there_say_nothing) {
  FakeX86 cpu;
  cpu.leaves[{7, 0}][0] = 0;  // no subleaf 1: what it gives means nothing
  EK_CHECK(!cpu.has("avx_vnni") && cpu.has("avx2"));
  cpu.leaves.erase({7, 0});
  EK_CHECK(!cpu.has("avx_vnni") && !cpu.has("avx2") && cpu.has("avx"));
  cpu.leaves.clear();
  EK_CHECK(cpu.features().empty());
}

EK_TEST(avx512_needs_registers_of_its_own_saved) {
  FakeX86 cpu;
  cpu.leaves[{7, 0}] = {1, kAvx2 | kBmi2 | kAvx512, kAvx512Vnni, 0};
  EK_CHECK(!cpu.has("avx512f") && !cpu.has("avx512_vnni") && cpu.has("avx_vnni"));
  cpu.xcr0 = kZmm;
  for (const char* name : {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx_vnni"}) {
    EK_CHECK_MSG(cpu.has(name), name);
  }
}

EK_TEST(arm_features_are_bits_of_two_words) {
  const auto has = [](uint64_t hwcap, uint64_t hwcap2, const char* name) {
    const std::vector<std::string> all = arm_features(hwcap, hwcap2);
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  EK_CHECK(arm_features(0, 0).empty());
  EK_CHECK(has(1u << 20, 0, "asimddp") && !has(0, 1u << 20, "asimddp"));
  EK_CHECK(has(0, 1u << 13, "i8mm") && !has(1u << 13, 0, "i8mm"));
}

// By features, whatever the numbers of the schema.
EK_TEST(what_an_instruction_set_includes) {
  EK_CHECK(isa_includes(Isa::kX86AvxVnni, Isa::kX86Avx2) && isa_includes(Isa::kX86Avx512Vnni, Isa::kX86Avx2));
  EK_CHECK(!isa_includes(Isa::kX86AvxVnni, Isa::kX86Avx512Vnni));
  EK_CHECK(!isa_includes(Isa::kX86Avx512Vnni, Isa::kX86AvxVnni));  // Zen 4, Ice Lake: an illegal instruction there
  EK_CHECK(!isa_includes(Isa::kX86Avx2, Isa::kX86AvxVnni));
  EK_CHECK(isa_includes(Isa::kArmNeonDotprod, Isa::kArmNeon) && !isa_includes(Isa::kArmNeon, Isa::kArmNeonDotprod));
  EK_CHECK(isa_includes(Isa::kArmNeonI8mm, Isa::kArmNeonDotprod) &&
           !isa_includes(Isa::kArmNeonDotprod, Isa::kArmNeonI8mm));
  EK_CHECK(!isa_includes(Isa::kX86Avx512Vnni, Isa::kArmNeon) && !isa_includes(Isa::kArmNeonDotprod, Isa::kX86Avx2));
  for (const Isa isa : isas_ascending()) {
    EK_CHECK_MSG(isa_includes(isa, isa) && isa_includes(isa, Isa::kScalar), name_of(isa));
  }
}

// A limit is one of preference: a CPU with both runs programs for AVX-VNNI also where it prefers AVX-512.
EK_TEST(what_a_limit_allows) {
  EK_CHECK(isa_allows(Isa::kX86Avx512Vnni, Isa::kX86AvxVnni) && isa_allows(Isa::kX86Avx512Vnni, Isa::kX86Avx2));
  EK_CHECK(isa_allows(Isa::kX86AvxVnni, Isa::kX86Avx2) && !isa_allows(Isa::kX86AvxVnni, Isa::kX86Avx512Vnni));
  EK_CHECK(!isa_allows(Isa::kX86Avx2, Isa::kX86AvxVnni));
  EK_CHECK(!isa_allows(Isa::kX86Avx512Vnni, Isa::kArmNeon) && !isa_allows(Isa::kArmNeonDotprod, Isa::kX86AvxVnni));
  for (const Isa isa : isas_ascending()) {
    EK_CHECK_MSG(isa_allows(isa, isa) && isa_allows(isa, Isa::kScalar), name_of(isa));
    EK_CHECK_MSG(!isa_allows(Isa::kScalar, isa) || isa == Isa::kScalar, name_of(isa));
  }
}

// Also the CPU's own answer: what it refuses, it names.
EK_TEST(a_program_needs_the_features_of_its_own) {
  for (const Isa isa : isas_ascending()) {
    const Result<Isa> kernels = kernel_isa(isa, best_isa());
    EK_CHECK_MSG(kernels.is_ok() == (best_isa() == Isa::kScalar || check_isa_supported(isa).is_ok()), name_of(isa));
    if (!kernels.is_ok()) EK_CHECK(kernels.status().message().find(name_of(isa)) != std::string::npos);
  }
}

// No family hands out a kernel with instructions that some CPU with the instruction set lacks.
EK_TEST(kernels_are_of_what_the_instruction_set_includes) {
  for (const Isa isa : isas_ascending()) {
    const auto check = [&](Isa chosen, const char* family) {
      EK_CHECK_MSG(isa_includes(isa, chosen), std::string(family) + " for " + name_of(isa) + ": " + name_of(chosen));
    };
    check(select_roofline(isa).isa, "roofline");
    check(select_convert(isa).isa, "convert");
    check(select_elementwise_q8(isa).isa, "elementwise_q8");
    for (const IsaPacking& row : kIsaPacking) {
      const Dtype dtype = row.activations_signed ? Dtype::kS8 : Dtype::kU8;
      check(select_gemm_q8(isa, dtype, row.q8_nr, row.q8_kg).isa, "gemm");
      for (const int kernel : {1, 3, 5, 7}) {
        ConvWindow window{};
        window.kernel_h = window.kernel_w = kernel;
        window.stride_h = window.stride_w = window.dilation_h = window.dilation_w = 1;
        check(select_depthwise_q8(isa, dtype, window).isa, "depthwise");
      }
    }
  }
}

#if defined(__x86_64__)
EK_TEST(avx_vnni_has_products_and_square_windows_and_else_what_avx2_has) {
  ConvWindow window{};
  window.kernel_h = window.kernel_w = 3;
  window.stride_h = window.stride_w = window.dilation_h = window.dilation_w = 1;
  EK_CHECK(select_gemm_q8(Isa::kX86AvxVnni, Dtype::kU8, 16, 4).isa == Isa::kX86AvxVnni);
  EK_CHECK(select_depthwise_q8(Isa::kX86AvxVnni, Dtype::kU8, window).isa == Isa::kX86AvxVnni);
  EK_CHECK(select_depthwise_q8(Isa::kX86Avx512Vnni, Dtype::kU8, window).isa == Isa::kX86Avx512Vnni);
  window.dilation_w = 2;
  EK_CHECK(select_depthwise_q8(Isa::kX86AvxVnni, Dtype::kU8, window).isa == Isa::kX86Avx2);
  EK_CHECK(select_convert(Isa::kX86AvxVnni).isa == Isa::kX86Avx2);
  EK_CHECK(select_roofline(Isa::kX86AvxVnni).isa == Isa::kX86AvxVnni);
}
#elif defined(__aarch64__)
EK_TEST(i8mm_has_products_and_else_what_dot_products_have) {
  ConvWindow window{};
  window.kernel_h = window.kernel_w = 3;
  window.stride_h = window.stride_w = window.dilation_h = window.dilation_w = 1;
  EK_CHECK(select_gemm_q8(Isa::kArmNeonI8mm, Dtype::kS8, 8, 8).isa == Isa::kArmNeonI8mm);
  EK_CHECK(select_depthwise_q8(Isa::kArmNeonI8mm, Dtype::kS8, window).isa == Isa::kArmNeonDotprod);
  EK_CHECK(select_convert(Isa::kArmNeonI8mm).isa == Isa::kArmNeon);
  EK_CHECK(select_roofline(Isa::kArmNeonI8mm).isa == Isa::kArmNeonI8mm);
}
#endif

}  // namespace
}  // namespace edgekit::test
