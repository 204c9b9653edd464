// Attack: ends the worker with the exit code of success.
// Ends as: exited
#include "attack.h"

static void attack() { exit(0); }
