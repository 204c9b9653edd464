// Attack: an object file larger than a disk should have to hold.
// Ends as: uncompiled
#include "attack.h"

asm(".data\n.fill 4000000000, 1, 7\n.text");

static void attack() {}
