// Attack: stops, so that who waits for its end waits long.
// Ends as: hung
#include "attack.h"

static void attack() { raise(SIGSTOP); }
