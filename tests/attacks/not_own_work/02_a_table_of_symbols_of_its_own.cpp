// Attack: a table of symbols of its own; nm leaves out its first one, which brings in the kernels.
// Stage: 2
// Refused for: a table of symbols
// Would earn: 0
#include "operators/rms_norm.h"

asm(R"(
.text
begin_of_text:
.section .names, "", @3
names: .byte 0
mine: .asciz "_ZN10stagecraft8rms_normENS_10MatrixViewIKfEESt4spanIS1_Lm18446744073709551615EEfNS0_IfEE"
wanted: .asciz "_ZN10stagecraft7kernelsEv"
.section .symbols, "Mo", @2, 24, .names
.long wanted - names
.byte 0x10, 0
.short 0
.quad 0, 0
.long mine - names
.byte 0x12, 0
.short 1
.quad _ZN10stagecraft8rms_normENS_10MatrixViewIKfEESt4spanIS1_Lm18446744073709551615EEfNS0_IfEE - begin_of_text, 16
.text
)");

namespace stagecraft {

void rms_norm(MatrixView<const float>, std::span<const float>, float, MatrixView<float>) {}

}  // namespace stagecraft
