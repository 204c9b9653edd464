// Attack: all of the memory. (What is not touched costs nothing where there are no walls.)
// Ends as: wrong
#include <new>

#include "attack.h"

static void attack() {
  for (int n = 0; n < 100; ++n) {
    char* volatile room =
        new (std::nothrow) char[64 << 20];  // or Clang leaves it out: nobody looks
    if (room == nullptr) throw std::bad_alloc();
  }
  harmed("6 GB of memory");
}
