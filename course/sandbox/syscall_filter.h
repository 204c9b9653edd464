#pragma once

#include <sys/types.h>

#include <vector>

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#define STAGECRAFT_CAN_FILTER_SYSCALLS 1
#include <linux/filter.h>

namespace stagecraft::stages {

// A seccomp filter: what is not on a short list answers ENOSYS, as in a kernel that lacks it. On it
// is what arithmetic needs: memory, files by the rights they have, clocks, threads. Not on it:
// sockets, ptrace and the memory of others, signals to others, another's limits, owners and rights
// of files, memory that no limit counts, namespaces, sessions and groups of one's own (so that
// killing the group kills all).
//
// Why not libseccomp: seccomp_load allocates memory, which is not safe between fork and exec, and
// the pid is not known earlier. Writing out its program before the fork takes libseccomp 2.5.4 1.0
// ms for this many rules, for every worker; this class takes 1.5 us, with about 70 lines beside the
// list.
//
// starts_processes: for a compiler, which runs its passes; without it, only threads: no fork, and
// no other program in the place of its own.
class SyscallFilter {
 public:
  explicit SyscallFilter(bool starts_processes);

  // From here on it holds for this process and whatever it starts. Between fork and exec: calls
  // nothing that is not safe there. Without starts_processes, execve is allowed for the text at
  // `program` alone: the program that it becomes does not know that address of its parent. Returns
  // whether the kernel took it.
  bool enter(const char* program);

 private:
  void allow(unsigned nr);
  void allow_if(unsigned nr, unsigned argument, const std::vector<unsigned>& values);
  void allow_clone(bool processes);
  void allow_own_signals(unsigned nr);
  void allow_execve_once();
  void add(unsigned code, unsigned k, unsigned if_true = 0, unsigned if_false = 0);

  std::vector<sock_filter> program_;
  std::vector<std::size_t> own_pid_;  // instructions that compare with the pid, known after fork
  std::size_t own_program_ =
      0;  // two that compare with the halves of an address; 0: there are none
};

}  // namespace stagecraft::stages
#endif
