#include "operators/kernels/instruction_sets.h"

#include <algorithm>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace stagecraft {
namespace {

#if defined(__x86_64__)
// Bit `bit` of the CPUID register that `pick` selects.
bool has_cpuid_bit(unsigned leaf, unsigned subleaf, char pick, unsigned bit) {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(leaf, subleaf, &eax, &ebx, &ecx, &edx) == 0) return false;
  return ((pick == 'a' ? eax : pick == 'c' ? ecx : edx) >> bit & 1) != 0;
}

// On Linux, a process must ask for the registers of AMX. Threads that start later have them, too.
// Other systems are not supported.
bool may_use_amx() {
#if defined(__linux__)
  constexpr long kAskForFeature = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;           // XFEATURE_XTILEDATA
  static const bool may = ::syscall(SYS_arch_prctl, kAskForFeature, kTileData) == 0;
  return may;
#else
  return false;
#endif
}
#endif

// True if the processor has the feature and the operating system saves its registers.
bool has_feature(std::string_view name) {
#if defined(__x86_64__)
  if (name == "avx2") return __builtin_cpu_supports("avx2");
  if (name == "fma") return __builtin_cpu_supports("fma");
  // The __builtin_cpu_supports of some compilers does not know these two.
  if (name == "f16c") return has_cpuid_bit(1, 0, 'c', 29);
  if (name == "avxvnni") return has_cpuid_bit(7, 1, 'a', 4);
  if (name == "avx512f") return __builtin_cpu_supports("avx512f");
  if (name == "avx512bw") return __builtin_cpu_supports("avx512bw");
  if (name == "avx512vl") return __builtin_cpu_supports("avx512vl");
  if (name == "avx512dq") return __builtin_cpu_supports("avx512dq");
  if (name == "avx512vnni") return __builtin_cpu_supports("avx512vnni");
  if (name == "amx-tile") return has_cpuid_bit(7, 0, 'd', 24) && may_use_amx();
  if (name == "amx-bf16") return has_cpuid_bit(7, 0, 'd', 22);
  if (name == "amx-int8") return has_cpuid_bit(7, 0, 'd', 25);
  if (name == "avx512bf16") return __builtin_cpu_supports("avx512bf16");
#elif defined(__aarch64__) && defined(__linux__)
  if (name == "dotprod") return (::getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
  if (name == "i8mm") return (::getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
#elif defined(__aarch64__) && defined(__APPLE__)
  if (name == "dotprod") return true;  // every arm64 processor of Apple has it
  if (name == "i8mm") {
    // An older system does not know this name and leaves `has` at 0.
    int has = 0;
    std::size_t size = sizeof has;
    ::sysctlbyname("hw.optional.arm.FEAT_I8MM", &has, &size, nullptr, 0);
    return has != 0;
  }
#endif
  return false;  // unknown feature
}

}  // namespace

bool can_run(std::string_view features) {
  while (!features.empty()) {
    const std::size_t end = std::min(features.find(' '), features.size());
    if (!has_feature(features.substr(0, end))) return false;
    features.remove_prefix(std::min(end + 1, features.size()));
  }
  return true;
}

// On a core of a Zen 4, a 1B model in F16, Q4_K_M, Q4_0 and Q8_0 generates 1.36, 1.30, 1.28
// and 1.15 times as fast without prefetch instructions, and minimind2-small Q8_0, which fits into
// its caches, 1.9 times. On a Zen 3, which has no AVX-512, bytes are read more slowly without them.
// An Intel Xeon needs them.
bool prefetches_itself() {
#if defined(__x86_64__)
  return __builtin_cpu_is("amd") != 0 && __builtin_cpu_supports("avx512f") != 0;
#else
  return false;
#endif
}

// On a core of an Intel Xeon with AMX, the bf16 kernel reaches 123 Gop/s with vdpbf16ps, and 199
// with a shift to f32 and multiply-adds. On AMD's Zen 4 and Zen 5, vdpbf16ps is twice as fast as
// f32 (docs/kernels.md).
bool is_slower_here([[maybe_unused]] std::string_view name) {
#if defined(__x86_64__)
  return name == "avx512_bf16" && __builtin_cpu_is("intel") != 0;
#else
  return false;
#endif
}

}  // namespace stagecraft
