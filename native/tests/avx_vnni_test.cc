// The AVX-VNNI kernels as they are compiled. Where the CPU lacks the instruction, the illegal one is emulated: slowly,
// so these are fewer cases than conv_q8_test and depthwise_q8_test have, which run portable code in place of the
// kernels.
#include "core/cpu_features.h"
#include "tests/check.h"
#include "tests/q8_conv_case.h"
#include "tests/vnni_emulation.h"

namespace edgekit::test {
namespace {

// Whether kernels can run. Where they are emulated, `ran` tells whether any did.
class Emulation {
 public:
  bool is_ready() const { return native_ || (check_isa_supported(Isa::kX86Avx2).is_ok() && emulate_avx_vnni()); }
  bool ran() const { return native_ || emulated_instructions() > before_; }

 private:
  const bool native_ = check_isa_supported(Isa::kX86AvxVnni).is_ok();
  const int64_t before_ = emulated_instructions();
};

EK_TEST(products) {
  const Emulation emulation;
  if (!emulation.is_ready()) EK_SKIP("no AVX2, or no signals that show its registers");
  uint64_t seed = 1;
  for (const int out_channels : {1, 7, 8, 9, 16, 20, 40}) {
    for (int rows = 1; rows <= 17; rows += 2) {
      ConvCase c;
      c.channels = 1 + static_cast<int>(seed * 7 % 24);
      c.out_channels = out_channels;
      c.h = 1;
      c.w = rows;
      c.nr = 16;
      c.kg = 4;
      c.lut = seed % 3 == 0;
      c.add = seed % 4 == 0;
      c.values = seed % 2 ? Values::kExtremes : Values::kRandom;
      c.flush = seed % 2 ? GuardedBuffer::Flush::kEnd : GuardedBuffer::Flush::kBegin;
      c.seed = seed++;
      check_conv_case(c, Isa::kX86AvxVnni);
    }
  }
  EK_CHECK(emulation.ran());
}

EK_TEST(windows_of_products) {
  const Emulation emulation;
  if (!emulation.is_ready()) EK_SKIP("no AVX2, or no signals that show its registers");
  uint64_t seed = 1;
  for (const bool zero_padding : {false, true}) {  // copied windows, or skipped taps
    for (const int channels : {3, 8, 19}) {
      for (const int stride : {1, 2}) {
        ConvCase c;
        c.n = 2;
        c.h = 6;
        c.w = 7;
        c.channels = channels;
        c.out_channels = 18;
        c.kernel_h = c.kernel_w = 3;
        c.stride_h = c.stride_w = stride;
        c.pad_top = c.pad_left = 1;
        c.nr = 16;
        c.kg = 4;
        c.zero_padding = zero_padding;
        c.seed = seed++;
        check_conv_case(c, Isa::kX86AvxVnni);
      }
    }
  }
  EK_CHECK(emulation.ran());
}

EK_TEST(square_depthwise_windows) {
  const Emulation emulation;
  if (!emulation.is_ready()) EK_SKIP("no AVX2, or no signals that show its registers");
  uint64_t seed = 1;
  for (const int kernel : {3, 5, 7}) {
    for (const int stride : {1, 2}) {
      for (const int channels : {3, 8, 20}) {
        for (const int size : {1, 4, 13}) {
          ConvCase c;
          c.depthwise = true;
          c.kernel_h = c.kernel_w = kernel;
          c.stride_h = c.stride_w = stride;
          c.pad_top = c.pad_left = kernel / 2;
          c.channels = channels;
          c.h = 1 + static_cast<int>(seed % 7);
          c.w = size;
          c.add = seed % 4 == 0;
          c.values = seed % 2 ? Values::kExtremes : Values::kRandom;
          c.flush = seed % 2 ? GuardedBuffer::Flush::kEnd : GuardedBuffer::Flush::kBegin;
          c.seed = seed++;
          check_conv_case(c, Isa::kX86AvxVnni);
        }
      }
    }
  }
  EK_CHECK(emulation.ran());
}

}  // namespace
}  // namespace edgekit::test
