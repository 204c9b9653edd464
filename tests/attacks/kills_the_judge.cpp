// Attack: ends, stops or starves the process that judges it, so that it cannot report.
// Ends as: wrong
// Without confinement: harms
#include <sys/resource.h>
#include <sys/syscall.h>

#include "attack.h"

static void attack() {
  const pid_t victim = CANARY_PID;
  const rlimit nothing{0, 0};
  harmed_if(prlimit(victim, RLIMIT_NOFILE, &nothing, nullptr) == 0, "another's limits");
  int ends[2];
  if (pipe(ends) == 0) {  // asks the kernel to send the signal
    const bool owned = fcntl(ends[0], F_SETOWN, victim) == 0;
    harmed_if(owned && fcntl(ends[0], F_SETSIG, SIGKILL) == 0, "signals by a pipe");
  }
  harmed_if(syscall(SYS_pidfd_open, victim, 0) >= 0, "pidfd");
  harmed_if(setpriority(PRIO_PROCESS, static_cast<id_t>(victim), 19) == 0, "another's priority");
  siginfo_t info{};
  info.si_code = SI_QUEUE;
  harmed_if(syscall(SYS_rt_sigqueueinfo, victim, SIGCONT, &info) == 0, "sigqueue");
  harmed_if(kill(victim, SIGCONT) == 0, "kill");
  harmed_if(kill(0, SIGCONT) == 0, "kill of a group");
  if (kill(victim, SIGKILL) != 0) kill(getppid(), SIGKILL);
}
