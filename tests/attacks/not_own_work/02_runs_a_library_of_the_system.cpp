// Attack: takes the machine code of a library of the system. (With that of sqrtf: 20 points.)
// Stage: 2
// Refused for: its assembler includes
// Would earn: 0
#include "operators/rms_norm.h"

asm(".text\n.incbin \"/usr/bin/env\"\n");

namespace stagecraft {

void rms_norm(MatrixView<const float>, std::span<const float>, float, MatrixView<float>) {}

}  // namespace stagecraft
