// Attack: raises its own limits, or keeps the rights of root.
// Ends as: wrong
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attack.h"

static void attack() {
  const rlimit endless{RLIM_INFINITY, RLIM_INFINITY};
  harmed_if(setrlimit(RLIMIT_CPU, &endless) == 0, "time");
  harmed_if(setrlimit(RLIMIT_FSIZE, &endless) == 0, "files");
  harmed_if(setrlimit(RLIMIT_AS, &endless) == 0, "memory");
  harmed_if(syscall(SYS_setuid, 0) == 0, "root");  // setuid() would wait for other threads for ever
  harmed_if(nice(-5) != -1, "priority");
  harmed_if(geteuid() == 0, "the user root");
}
