// Attack: replaces the worker's main.
// Ends as: uncompiled
#include "attack.h"

static void attack() {}

int main() { return 0; }
