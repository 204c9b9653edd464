// Attack: starts as many processes as possible. (Without a sandbox, it ends itself.)
// Ends as: wrong
// Without confinement: harms
#include <sys/wait.h>

#include "attack.h"

static void attack() {
  for (int n = 0; n < 50; ++n) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    harmed_if(child > 0, "fork");
    harmed_if(vfork() == 0 && (_exit(0), true), "vfork");
  }
  while (wait(nullptr) > 0) {
  }
}
