// Attack: lets the assembler read what the worker may not.
// Ends as: uncompiled
#include "attack.h"

asm(".data\nsecret: .incbin \"" SECRET "\"\n.text");

static void attack() {}
