// Attack: leaves a process running, to change the grading of later code.
// Ends as: wrong
// Without confinement: harms
#include <sys/wait.h>

#include "attack.h"

static void attack() {
  harmed_if(setsid() >= 0, "setsid");
  const pid_t child = fork();
  if (child < 0) return;
  if (child > 0) {
    harmed("fork");
    waitpid(child, nullptr, 0);
    return;
  }
  setsid();
  if (fork() != 0) _exit(0);
  close(STDOUT_FILENO);  // the daemon runs for one second, then ends
  close(STDERR_FILENO);
  sleep(1);
  _exit(0);
}
