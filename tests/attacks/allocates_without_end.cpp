// Attack: all of the memory. (What is not touched costs nothing where there are no walls.)
// Ends as: wrong
#include <new>

#include "attack.h"

static void attack() {
  for (int n = 0; n < 100; ++n) {
    if (new (std::nothrow) char[64 << 20] == nullptr) throw std::bad_alloc();
  }
  harmed("6 GB of memory");
}
