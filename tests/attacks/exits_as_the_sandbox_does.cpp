// Attack: ends with the exit code that means that the sandbox could not start the command.
// Ends as: exited
#include "attack.h"

static void attack() { _exit(125); }
