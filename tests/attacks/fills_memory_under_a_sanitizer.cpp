// Attack: takes memory under a sanitizer, where the address space has no limit.
// Ends as: crashed
#include "attack.h"

#include <sys/mman.h>

static void attack() {
#ifdef __SANITIZE_ADDRESS__
  for (int i = 0; i < 6; ++i) {
    void* const memory = mmap(nullptr, std::size_t{1} << 30, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) memset(memory, 1, std::size_t{1} << 30);
  }
#endif
  __builtin_trap();
}
