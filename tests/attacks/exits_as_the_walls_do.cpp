// Attack: ends with the code by which the walls say that a command could not be started.
// Ends as: exited
#include "attack.h"

static void attack() { _exit(125); }
