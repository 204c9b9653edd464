// Attack: stops itself, so that a process that waits for its end waits long.
// Ends as: hung
#include "attack.h"

static void attack() { raise(SIGSTOP); }
