// Attack: leaves the sandbox with namespaces, mounts, or another root.
// Ends as: wrong
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "attack.h"

static void attack() {
  harmed_if(unshare(CLONE_NEWUSER) == 0, "a user namespace");
  harmed_if(unshare(CLONE_NEWNS) == 0, "a mount namespace");
  harmed_if(mount("none", FOLDER, "tmpfs", 0, nullptr) == 0, "a mount");
  harmed_if(chroot(FOLDER) == 0, "a root of its own");
  harmed_if(syscall(SYS_bpf, 0, nullptr, 0) >= 0, "bpf");
  harmed_if(syscall(SYS_userfaultfd, 0) >= 0, "userfaultfd");
  harmed_if(syscall(SYS_keyctl, 0, -3, 1) >= 0, "keys");
  harmed_if(syscall(SYS_personality, 0xffffffff) >= 0, "personality");
  harmed_if(syscall(SYS_open_by_handle_at, -1, nullptr, 0) >= 0, "open by handle");
}
