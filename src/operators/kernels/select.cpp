#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "operators/kernels/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

// The tables that src/CMakeLists.txt has compiled for this kind of processor, worst first.
#if defined(__x86_64__)
#define STAGECRAFT_ISAS(each) \
  each(portable) each(avx2) each(avx_vnni) each(avx512) each(avx512_vnni) each(avx512_bf16)
#elif defined(__aarch64__)
#define STAGECRAFT_ISAS(each) each(neon) each(neon_dotprod) each(neon_i8mm)
#else
#define STAGECRAFT_ISAS(each) each(portable)
#endif

namespace stagecraft {

#define STAGECRAFT_DECLARE(isa) \
  namespace isa {               \
  extern const Kernels table;   \
  }
STAGECRAFT_ISAS(STAGECRAFT_DECLARE)
#undef STAGECRAFT_DECLARE

namespace {

#if defined(__x86_64__)
// Two whose names __builtin_cpu_supports does not know in every compiler.
bool has_avx_vnni() {  // CPUID.(7, 1).EAX, bit 4
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax >> 4 & 1) != 0;
}
bool has_f16c() {  // CPUID.1.ECX, bit 29
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx >> 29 & 1) != 0;
}
#endif

// Does the processor have it, and does its system keep its registers?
bool can_run(std::string_view isa) {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq");
  if (isa == "avx2") return avx2;
  if (isa == "avx_vnni") return avx2 && has_avx_vnni();
  if (isa == "avx512") return avx512;
  const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  if (isa == "avx512_vnni") return vnni;
  if (isa == "avx512_bf16") return vnni && __builtin_cpu_supports("avx512bf16");
#elif defined(__aarch64__) && defined(__linux__)
  const bool dotprod = (::getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
  if (isa == "neon_dotprod") return dotprod;
  if (isa == "neon_i8mm") return dotprod && (::getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
#elif defined(__aarch64__) && defined(__APPLE__)
  if (isa == "neon_dotprod") return true;  // every Apple processor that macOS calls arm64
  // An older system does not know the name, and leaves the 0.
  int has = 0;
  std::size_t size = sizeof has;
  ::sysctlbyname("hw.optional.arm.FEAT_I8MM", &has, &size, nullptr, 0);
  if (isa == "neon_i8mm") return has != 0;
#else
  if (isa.starts_with("neon_")) return false;
#endif
  return true;
}

const Kernels& select() {
  const auto tables = runnable_kernels();
  const char* wanted = std::getenv("STAGECRAFT_ISA");
  if (wanted == nullptr) return *tables.back();
  std::string names;
  for (const Kernels* table : tables) {
    if (std::string_view(wanted) == table->name) return *table;
    names += (names.empty() ? "" : ", ") + std::string(table->name);
  }
  throw Error("STAGECRAFT_ISA: expected one that this processor runs ({}), found '{}'", names,
              printable(wanted));
}

}  // namespace

std::vector<const Kernels*> compiled_kernels() {
  return {
#define STAGECRAFT_ADDRESS(isa) &isa::table,
      STAGECRAFT_ISAS(STAGECRAFT_ADDRESS)
#undef STAGECRAFT_ADDRESS
  };
}

std::vector<const Kernels*> runnable_kernels() {
  std::vector<const Kernels*> tables = compiled_kernels();
  std::erase_if(tables, [](const Kernels* table) { return !can_run(table->name); });
  return tables;
}

const Kernels& kernels() {
  static const Kernels& chosen = select();
  return chosen;
}

}  // namespace stagecraft
