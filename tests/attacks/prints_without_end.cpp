// Attack: prints until the disk is full.
// Ends as: printed
#include "attack.h"

static void attack() {
  static char block[1 << 20];
  memset(block, 'x', sizeof block);
  for (int n = 0; n < 500; ++n) {
    if (write(STDOUT_FILENO, block, sizeof block) < 0) abort();
  }
}
