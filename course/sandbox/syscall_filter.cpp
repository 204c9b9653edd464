#include "course/sandbox/syscall_filter.h"

#ifdef STAGECRAFT_CAN_FILTER_SYSCALLS

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace stagecraft::stages {
namespace {

#if defined(__x86_64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
#else
constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
#endif
constexpr unsigned kRefuse = SECCOMP_RET_ERRNO | ENOSYS;

constexpr unsigned kForAll[] = {
    // files
    __NR_read,
    __NR_write,
    __NR_readv,
    __NR_writev,
    __NR_pread64,
    __NR_pwrite64,
    __NR_preadv,
    __NR_pwritev,
    __NR_openat,
    __NR_close,
    __NR_close_range,
    __NR_lseek,
    __NR_fstat,
    __NR_newfstatat,
    __NR_statx,
    __NR_faccessat,
    __NR_faccessat2,
    __NR_readlinkat,
    __NR_getdents64,
    __NR_getcwd,
    __NR_ftruncate,
    __NR_fsync,
    __NR_fdatasync,
    __NR_dup,
    __NR_dup3,
    __NR_pipe2,
    __NR_ppoll,
    __NR_pselect6,
    __NR_umask,
    // memory
    __NR_mmap,
    __NR_munmap,
    __NR_mprotect,
    __NR_mremap,
    __NR_madvise,
    __NR_brk,
    __NR_mincore,
    __NR_membarrier,
    // threads and signals
    __NR_futex,
    __NR_set_robust_list,
    __NR_set_tid_address,
    __NR_rseq,
    __NR_sched_yield,
    __NR_sched_getaffinity,
    __NR_gettid,
    __NR_exit,
    __NR_exit_group,
    __NR_rt_sigaction,
    __NR_rt_sigprocmask,
    __NR_rt_sigreturn,
    __NR_rt_sigpending,
    __NR_rt_sigsuspend,
    __NR_rt_sigtimedwait,
    __NR_sigaltstack,
    __NR_restart_syscall,
    // clocks
    __NR_clock_gettime,
    __NR_clock_getres,
    __NR_clock_nanosleep,
    __NR_nanosleep,
    __NR_gettimeofday,
    __NR_getitimer,
    __NR_setitimer,
    __NR_times,
    // about the process and the machine
    __NR_getpid,
    __NR_getppid,
    __NR_getuid,
    __NR_geteuid,
    __NR_getgid,
    __NR_getegid,
    __NR_getpgid,
    __NR_getrusage,
    __NR_getrandom,
    __NR_uname,
    __NR_sysinfo,
#if defined(__x86_64__)
    __NR_open,
    __NR_stat,
    __NR_lstat,
    __NR_access,
    __NR_readlink,
    __NR_dup2,
    __NR_pipe,
    __NR_poll,
    __NR_select,
    __NR_alarm,
    __NR_pause,
    __NR_time,
    __NR_getpgrp,
    __NR_getrlimit,
    __NR_arch_prctl,
#endif
};

constexpr unsigned kForCompilers[] = {
    __NR_execve,  // Landlock limits which programs
    __NR_symlinkat, __NR_wait4,    __NR_waitid,    __NR_chdir,           __NR_fchdir,
    __NR_mkdirat,   __NR_unlinkat, __NR_renameat2, __NR_renameat,        __NR_fchmod,
    __NR_fchmodat,  __NR_truncate, __NR_fallocate, __NR_copy_file_range, __NR_sendfile,
    __NR_utimensat, __NR_flock,    __NR_statfs,    __NR_fstatfs,         __NR_fadvise64,
#if defined(__x86_64__)
    __NR_symlink,   __NR_fork,     __NR_vfork,     __NR_mkdir,           __NR_rmdir,
    __NR_unlink,    __NR_rename,   __NR_chmod,
#endif
};

constexpr unsigned offset_of_argument(unsigned n) {  // the lower half of the argument
  return static_cast<unsigned>(offsetof(seccomp_data, args)) + 8 * n;
}

}  // namespace

SyscallFilter::SyscallFilter(bool starts_processes) {
  add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
  add(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0);
  add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);  // 32-bit calls use other numbers
  add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (const unsigned nr : kForAll) allow(nr);
  if (starts_processes) {
    for (const unsigned nr : kForCompilers) allow(nr);
  } else {
    allow_execve_once();
  }
  allow_clone(starts_processes);
  allow_own_signals(__NR_kill);
  allow_own_signals(__NR_tgkill);
  allow_if(__NR_prlimit64, 0, {0});  // its own limits; it cannot raise the hard ones
  // No F_SETOWN and F_SETSIG: with these, the kernel sends signals in the process's name.
  allow_if(
      __NR_fcntl, 1,
      {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK, F_SETLK, F_SETLKW});
  allow_if(__NR_ioctl, 1, {TCGETS, TIOCGWINSZ, FIONREAD, FIOCLEX, FIONCLEX});
  allow_if(__NR_prctl, 0, {PR_SET_NAME, PR_GET_NAME});
  add(BPF_RET | BPF_K, kRefuse);
}

void SyscallFilter::add(unsigned code, unsigned k, unsigned if_true, unsigned if_false) {
  program_.push_back({static_cast<unsigned short>(code), static_cast<unsigned char>(if_true),
                      static_cast<unsigned char>(if_false), k});
}

// Each function below leaves the system call number in the accumulator, or its code has returned.

void SyscallFilter::allow(unsigned nr) {
  add(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1);
  add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
}

void SyscallFilter::allow_if(unsigned nr, unsigned argument, const std::vector<unsigned>& values) {
  add(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, static_cast<unsigned>(2 * values.size() + 2));
  add(BPF_LD | BPF_W | BPF_ABS, offset_of_argument(argument));
  for (const unsigned value : values) {
    add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  add(BPF_RET | BPF_K, kRefuse);
}

// clone3 has its flags behind a pointer, which a filter cannot read. Without it, libraries use
// clone.
void SyscallFilter::allow_clone(bool processes) {
  constexpr unsigned kNamespaces = 0x7e020000;  // CLONE_NEW*
  add(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone, 0, 4);
  add(BPF_LD | BPF_W | BPF_ABS, offset_of_argument(0));
  if (processes) {
    add(BPF_JMP | BPF_JSET | BPF_K, kNamespaces, 1, 0);
  } else {
    add(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1);
  }
  add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  add(BPF_RET | BPF_K, kRefuse);
}

void SyscallFilter::allow_own_signals(unsigned nr) {
  own_pid_.push_back(program_.size() + 2);
  allow_if(nr, 0, {0});
}

void SyscallFilter::allow_execve_once() {
  add(BPF_JMP | BPF_JEQ | BPF_K, __NR_execve, 0, 6);
  add(BPF_LD | BPF_W | BPF_ABS, offset_of_argument(0));
  own_program_ = program_.size();
  add(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3);
  add(BPF_LD | BPF_W | BPF_ABS, offset_of_argument(0) + 4);
  add(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
  add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  add(BPF_RET | BPF_K, kRefuse);
}

bool SyscallFilter::enter(const char* program) {
  for (const std::size_t at : own_pid_) program_[at].k = static_cast<unsigned>(::getpid());
  if (own_program_ != 0) {
    const auto address = reinterpret_cast<std::uintptr_t>(program);
    program_[own_program_].k = static_cast<unsigned>(address);
    program_[own_program_ + 2].k = static_cast<unsigned>(address >> 32);
  }
  const sock_fprog whole{static_cast<unsigned short>(program_.size()), program_.data()};
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) == 0;
}

}  // namespace stagecraft::stages
#endif
