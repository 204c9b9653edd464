// Attack: gives itself more.
// Ends as: wrong
#include <sys/resource.h>

#include "attack.h"

static void attack() {
  const rlimit endless{RLIM_INFINITY, RLIM_INFINITY};
  harmed_if(setrlimit(RLIMIT_CPU, &endless) == 0, "time");
  harmed_if(setrlimit(RLIMIT_FSIZE, &endless) == 0, "files");
  harmed_if(setrlimit(RLIMIT_AS, &endless) == 0, "memory");
  harmed_if(setuid(0) == 0, "root");
  harmed_if(nice(-5) != -1, "priority");
}
