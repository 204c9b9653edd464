// Attack: ends the worker as a program does that has done all right.
// Ends as: exited
#include "attack.h"

static void attack() { exit(0); }
