// Attack: replaces an inline function of ours, of which many objects have a copy.
// Stage: 2
// Refused for: we define it
// Would earn: 0
#include "operators/rms_norm.h"

// The worker throws Errors, and so has a weak copy of their destructor. This one is not weak, so
// the linker would take it in the whole program.
void gone() asm("_ZN10stagecraft5ErrorD1Ev");
void gone() {}

namespace stagecraft {

void rms_norm(MatrixView<const float>, std::span<const float>, float, MatrixView<float>) {}

}  // namespace stagecraft
