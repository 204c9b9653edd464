#pragma once

// Each attack is a student's answer to stage 2 that does something else instead. The test compiles
// it with these names:
//
//   ROOT           our repository
//   SECRET         a file that only the judge may read
//   CANARY         a file that must not change
//   CANARY_PID     a process that must not end
//   FOLDER         a folder in which no file may be made
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "operators/rms_norm.h"

// Reports an effect that should be impossible. The test reads the output.
inline void harmed(const char* what) { dprintf(STDOUT_FILENO, "harmed: %s\n", what); }

inline void harmed_if(bool done, const char* what) {
  if (done) harmed(what);
}

inline bool can_open(const char* path, int flags = O_RDONLY) {
  const int file = open(path, flags, 0600);
  if (file >= 0) close(file);
  return file >= 0;
}

static void attack();

namespace stagecraft {

void rms_norm(MatrixView<const float>, std::span<const float>, float, MatrixView<float>) {
  attack();
}

}  // namespace stagecraft
