// Attack: a worker of its own.
// Ends as: uncompiled
#include "attack.h"

static void attack() {}

int main() { return 0; }
