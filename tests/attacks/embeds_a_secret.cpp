// Attack: lets the assembler read a file that the worker may not read.
// Ends as: uncompiled
#include "attack.h"

asm(".data\nsecret: .incbin \"" SECRET "\"\n.text");

static void attack() {}
