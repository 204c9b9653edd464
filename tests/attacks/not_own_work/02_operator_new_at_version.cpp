// Attack: replaces operator new in the whole program, by a name with a version.
// Stage: 2
// Refused for: _Znwm@@X
// Would earn: 0
#include "operators/rms_norm.h"

[[gnu::used]] static void* allocate(std::size_t n) asm("allocate_");
static void* allocate(std::size_t n) {
  static char room[64 << 20];
  static std::size_t end = 0;
  end = (end + 63) / 64 * 64 + n;
  return room + end - n;
}
[[gnu::used]] static void keep() asm("keep_");
static void keep() {}
asm(".globl \"_Znwm@@X\"\n.set \"_Znwm@@X\", allocate_\n"
    ".globl \"_ZdlPvm@@X\"\n.set \"_ZdlPvm@@X\", keep_\n"
    ".globl \"_ZdlPv@@X\"\n.set \"_ZdlPv@@X\", keep_\n");

namespace stagecraft {

void rms_norm(MatrixView<const float>, std::span<const float>, float, MatrixView<float>) {}

}  // namespace stagecraft
