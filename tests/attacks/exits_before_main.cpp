// Attack: ends with the exit code of success, before main().
// Ends as: exited
#include "attack.h"

static void attack() {}

static const int never = [] {
  _exit(0);
  return 0;
}();
