// Attack: closes and duplicates all of its files, and opens more.
// Ends as: wrong
#include "attack.h"

static void attack() {
  int n = 0;
  while (n < 100'000 && dup(STDOUT_FILENO) >= 0) ++n;
  harmed_if(n >= 1000, "files without end");
  for (int file = 3; file < 2000; ++file) close(file);
  dup2(STDERR_FILENO, 63);
}
