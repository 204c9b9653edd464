// Attack: asks another machine, or sends the questions to it.
// Ends as: wrong
// Without confinement: harms
#include <sys/socket.h>
#include <sys/syscall.h>

#include "attack.h"

static void attack() {
  for (const int family : {AF_INET, AF_INET6, AF_UNIX, AF_NETLINK, AF_VSOCK}) {
    for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW}) {
      harmed_if(socket(family, type, 0) >= 0, "socket");
    }
  }
  int pair[2];
  harmed_if(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
  char parameters[256] = {};
  harmed_if(syscall(SYS_io_uring_setup, 1, parameters) >= 0, "io_uring");
}
