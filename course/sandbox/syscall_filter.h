#pragma once

#include <sys/types.h>

#include <vector>

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#define STAGECRAFT_CAN_FILTER_SYSCALLS 1
#include <linux/filter.h>

namespace stagecraft::stages {

// A seccomp filter with a list of allowed system calls; all others return ENOSYS, as in a kernel
// that lacks them. The list holds what arithmetic needs: memory, files (their rights still count),
// clocks, threads. It does not hold: sockets, ptrace and the memory of other processes, signals to
// others, changing the limits of others, owners and modes of files, memory that no limit counts,
// namespaces, new sessions and process groups (so that killing the group kills all).
//
// Why not libseccomp: seccomp_load allocates memory, which is not safe between fork and exec, and
// the pid is not known earlier. With libseccomp 2.5.4, writing the program before the fork takes
// 1.0 ms for this many rules, for every worker. This class takes 1.5 us, and about 70 lines in
// addition to the list.
//
// starts_processes: for a compiler, which starts its passes as programs. Without it: only threads,
// no fork, and no execve after the first.
class SyscallFilter {
 public:
  explicit SyscallFilter(bool starts_processes);

  // From this call on, the filter holds for this process and everything it starts. It is called
  // between fork and exec, so it calls only async-signal-safe functions. Without starts_processes,
  // execve is allowed only with the text at the address `program`; the new program does not know
  // this address of its parent. Returns false if the kernel refused.
  bool enter(const char* program);

 private:
  void allow(unsigned nr);
  void allow_if(unsigned nr, unsigned argument, const std::vector<unsigned>& values);
  void allow_clone(bool processes);
  void allow_own_signals(unsigned nr);
  void allow_execve_once();
  void add(unsigned code, unsigned k, unsigned if_true = 0, unsigned if_false = 0);

  std::vector<sock_filter> program_;
  std::vector<std::size_t> own_pid_;  // instructions that compare with the pid, set after fork
  std::size_t own_program_ =
      0;  // two instructions that compare with the halves of an address; 0: none
};

}  // namespace stagecraft::stages
#endif
