// Attack: sleeps for ever without CPU time, and ignores all signals that it can.
// Ends as: hung
#include "attack.h"

static void attack() {
  for (int number = 1; number < 32; ++number) signal(number, SIG_IGN);
  for (;;) pause();
}
