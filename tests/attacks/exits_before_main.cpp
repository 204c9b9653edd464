// Attack: the same, before anything of ours runs.
// Ends as: exited
#include "attack.h"

static void attack() {}

static const int never = [] {
  _exit(0);
  return 0;
}();
