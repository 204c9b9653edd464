// Attack: an object file that is too large for the disk.
// Ends as: uncompiled
#include "attack.h"

asm(".data\n.fill 4000000000, 1, 7\n.text");

static void attack() {}
