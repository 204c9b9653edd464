// Attack: takes all memory. (Memory that is not touched costs nothing where there is no sandbox.)
// Ends as: wrong
#include <new>

#include "attack.h"

static void attack() {
  for (int n = 0; n < 100; ++n) {
    char* volatile room =
        new (std::nothrow) char[64 << 20];  // nothrow: Clang would leave out a plain new
    if (room == nullptr) throw std::bad_alloc();
  }
  harmed("6 GB of memory");
}
