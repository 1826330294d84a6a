// What the CPU and the operating system allow: feature names and the instruction sets built from them.
#ifndef EDGEKIT_CORE_CPU_FEATURES_H_
#define EDGEKIT_CORE_CPU_FEATURES_H_

#include <string>
#include <vector>

#include "core/status.h"
#include "program_schema.h"  // generated: enum class Isa

namespace edgekit {

// Features found, sorted, named as in /proc/cpuinfo. x86 (CPUID, and XCR0 for what the operating system must save):
// avx, avx2, avx512vbmi, avx512_vnni, avx512bw, avx512dq, avx512f, avx512vl, avx_vnni, bmi2, f16c, fma, pclmulqdq,
// sha_ni, sse4_1, sse4_2, ssse3. ARM (HWCAP): asimd, asimddp, asimdhp, bf16, crc32, fphp, i8mm, sha2, sve, sve2.
const std::vector<std::string>& cpu_features();

// Whether that feature was found.
bool cpu_has(const char* feature);

// The best instruction set that this CPU runs.
Isa best_isa();

// Whether every CPU that runs kernels of `isa` runs those of `other` too: it needs no feature beyond.
bool isa_includes(Isa isa, Isa other);

// Whether someone who limits this process to `active` leaves it `wanted`: nothing preferred to it, nor of another
// architecture. The CPU need not have it: no AVX-512 implies AVX-VNNI.
bool isa_allows(Isa active, Isa wanted);

// Every instruction set, within an architecture the preferred ones last.
std::vector<Isa> isas_ascending();

// Isa by its name in program_schema.toml; kInvalidInput with the known names for any other.
Result<Isa> parse_isa(const std::string& name);

// Whether kernels of isa can run here; kUnsupportedIsa naming the first missing feature (or the other architecture).
Status check_isa_supported(Isa isa);

// The instruction set in force: EDGEKIT_ISA where set, best_isa() otherwise. Fails when EDGEKIT_ISA names an unknown
// or unsupported one.
Result<Isa> active_isa();

// The instruction set whose kernels run a program packed for program_isa: program_isa itself when active allows it,
// scalar when active is scalar (scalar kernels run every program), otherwise kUnsupportedIsa.
Result<Isa> kernel_isa(Isa program_isa, Isa active);

}  // namespace edgekit

#endif  // EDGEKIT_CORE_CPU_FEATURES_H_
