#include "tests/vnni_emulation.h"

#if defined(__x86_64__) && defined(__linux__)

#include <signal.h>
#include <ucontext.h>

#include <atomic>
#include <cstring>

namespace edgekit::test {
namespace {

std::atomic<int64_t> emulated{0};

// The registers as a signal shows them (Linux, arch/x86/include/uapi/asm/sigcontext.h; Intel SDM volume 1, XSAVE).
class SavedRegisters {
 public:
  explicit SavedRegisters(void* saved) : bytes_(static_cast<uint8_t*>(saved)) {}

  bool has_ymm() const { return bytes_ != nullptr && read(464) == 0x46505853 && (read(464 + 8) & kYmm) != 0; }
  void load(int number, uint8_t (&ymm)[32]) const {
    std::memcpy(ymm, bytes_ + kXmm + 16 * number, 16);
    std::memset(ymm + 16, 0, 16);
    if ((read(kPresent) & kYmm) != 0) std::memcpy(ymm + 16, bytes_ + kUpper + 16 * number, 16);
  }
  void store(int number, const uint8_t (&ymm)[32]) {
    uint32_t present = read(kPresent);
    if ((present & kYmm) == 0) std::memset(bytes_ + kUpper, 0, 256);  // all upper halves were zero
    present |= kYmm | 2;
    std::memcpy(bytes_ + kPresent, &present, sizeof(present));
    std::memcpy(bytes_ + kXmm + 16 * number, ymm, 16);
    std::memcpy(bytes_ + kUpper + 16 * number, ymm + 16, 16);
  }

 private:
  static constexpr int kXmm = 160, kPresent = 512, kUpper = 576;
  static constexpr uint32_t kYmm = 4;

  uint32_t read(int at) const {
    uint32_t word;
    std::memcpy(&word, bytes_ + at, sizeof(word));
    return word;
  }

  uint8_t* bytes_;
};

// {vex} vpdpbusd ymm, ymm, ymm: C4 [R X B 00010] [0 vvvv 1 01] 50 [11 reg rm]; R, B and vvvv inverted.
bool is_dot(const uint8_t* code) {
  return code[0] == 0xC4 && (code[1] & 0x1F) == 2 && (code[2] & 0x87) == 0x05 && code[3] == 0x50 && code[4] >= 0xC0;
}

void dot(const uint8_t* code, SavedRegisters registers) {
  const int target = (code[4] >> 3 & 7) | (code[1] & 0x80 ? 0 : 8);
  uint8_t sums[32], u8[32], s8[32];
  registers.load(target, sums);
  registers.load(~code[2] >> 3 & 15, u8);
  registers.load((code[4] & 7) | (code[1] & 0x20 ? 0 : 8), s8);
  for (int lane = 0; lane < 8; ++lane) {
    uint32_t sum;
    std::memcpy(&sum, sums + 4 * lane, 4);
    for (int i = 4 * lane; i < 4 * lane + 4; ++i) sum += static_cast<uint32_t>(u8[i] * static_cast<int8_t>(s8[i]));
    std::memcpy(sums + 4 * lane, &sum, 4);
  }
  registers.store(target, sums);
}

void on_illegal(int number, siginfo_t*, void* context) {
  mcontext_t& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
  const auto* code = reinterpret_cast<const uint8_t*>(machine.gregs[REG_RIP]);
  SavedRegisters registers(machine.fpregs);
  if (!is_dot(code) || !registers.has_ymm()) {
    signal(number, SIG_DFL);  // the instruction is tried again, and ends the program
    return;
  }
  dot(code, registers);
  machine.gregs[REG_RIP] += 5;
  emulated.fetch_add(1, std::memory_order_relaxed);
}

std::atomic<bool> shows_ymm{false};

void on_probe(int, siginfo_t*, void* context) {
  shows_ymm = SavedRegisters(static_cast<ucontext_t*>(context)->uc_mcontext.fpregs).has_ymm();
}

void handle(int number, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  sigaction(number, &action, nullptr);
}

}  // namespace

bool emulate_avx_vnni() {
  handle(SIGUSR1, on_probe);
  raise(SIGUSR1);
  if (shows_ymm) handle(SIGILL, on_illegal);
  return shows_ymm;
}

int64_t emulated_instructions() { return emulated; }

}  // namespace edgekit::test

#else

namespace edgekit::test {

bool emulate_avx_vnni() { return false; }
int64_t emulated_instructions() { return 0; }

}  // namespace edgekit::test

#endif
