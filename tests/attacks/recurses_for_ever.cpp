// Attack: endless recursion.
// Ends as: crashed
#include "attack.h"

static int deeper(volatile int* from) {
  volatile int here[1024] = {*from};
  return deeper(here) + here[1];
}

static void attack() {
  volatile int start = 0;
  start = deeper(&start);
}
