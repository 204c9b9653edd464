// Attack: never ends, and takes no time of the processor's; deaf to what can be ignored.
// Ends as: hung
#include "attack.h"

static void attack() {
  for (int number = 1; number < 32; ++number) signal(number, SIG_IGN);
  for (;;) pause();
}
