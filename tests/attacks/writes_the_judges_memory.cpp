// Attack: writes to the memory of the process that judges it.
// Ends as: wrong
// Without confinement: harms
#include <sys/ptrace.h>
#include <sys/uio.h>

#include <string>

#include "attack.h"

static void attack() {
  char byte = 0;
  const iovec here{&byte, 1};
  for (const pid_t victim : {static_cast<pid_t>(CANARY_PID), getppid()}) {
    const std::string memory = "/proc/" + std::to_string(victim) + "/mem";
    harmed_if(can_open(memory.c_str(), O_RDWR), "opened another's memory");
    // Nothing is mapped at this address: EFAULT means that the permission check has passed.
    const iovec there{reinterpret_cast<void*>(1), 1};
    process_vm_writev(victim, &here, 1, &there, 1, 0);
    harmed_if(errno == EFAULT, "process_vm_writev");
    process_vm_readv(victim, &here, 1, &there, 1, 0);
    harmed_if(errno == EFAULT, "process_vm_readv");
    harmed_if(ptrace(PTRACE_SEIZE, victim, nullptr, nullptr) == 0, "ptrace");
    errno = 0;
  }
}
