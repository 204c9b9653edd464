// Attack: never ends.
// Ends as: hung
#include "attack.h"

static void attack() {
  for (volatile int n = 0;; n = n + 1) {
  }
}
