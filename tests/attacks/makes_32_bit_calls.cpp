// Attack: makes 32-bit calls: they have other numbers, so a filter could take one for another.
// Ends as: crashed
#include "attack.h"

static void attack() {
#if defined(__x86_64__)
  long result = 20;  // getpid
  asm volatile("int $0x80" : "+a"(result) : : "memory");
  harmed_if(result == getpid(), "a 32-bit call");
#else
  raise(SIGSYS);
#endif
}
