// Attack: a response whose header claims to be larger than any memory.
// Ends as: no_answer
#include "attack.h"

static void attack() {}

[[gnu::constructor]] static void forge(int, char** argv, char**) {
  const unsigned long long length = ~0ull / 2;
  const int file = open(argv[2], O_WRONLY | O_TRUNC);
  if (write(file, &length, sizeof length) > 0 && ftruncate(file, 1 << 16) == 0) _exit(0);
}
