// Attack: 20,000 sections claim to be large: a program that copies each of them never ends.
// Ends as: crashed
#include "attack.h"

asm(R"(.altmacro
.macro one n
.pushsection .b\n, "aw", @nobits
.skip 0x7fffffff
.popsection
.endm
.set i, 0
.rept 20000
one %i
.set i, i + 1
.endr
.noaltmacro
.pushsection .big, "aw", @progbits
.fill 12000000, 1, 1
.popsection
)");

static void attack() {}
