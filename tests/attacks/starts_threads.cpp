// Attack: starts as many threads as possible, each with little memory.
// Ends as: wrong
#include <pthread.h>

#include "attack.h"

static void* wait_for_ever(void*) {
  pause();
  return nullptr;
}

static void attack() {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 << 10);
  constexpr int kTooMany = 3000;
  int n = 0;
  pthread_t thread;
  while (n < kTooMany && pthread_create(&thread, &small, wait_for_ever, nullptr) == 0) ++n;
  harmed_if(n == kTooMany, "threads");
}
