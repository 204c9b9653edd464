#pragma once

#include <string>
#include <vector>

namespace stagecraft {

struct LimitedRun {
  int code = -1;  // exit code; -1 if a signal or the clock ended it (see ended_by)
  std::string ended_by;
  std::string out, err;
};

// Runs `stagecraft` with these arguments, without a terminal or input, with at most 1 GB of address
// space and 60 seconds. A file's false size would need address space. AddressSanitizer builds have
// no limit on addresses.
LimitedRun run_limited(const std::vector<std::string>& arguments);

// True if the limit works: not with AddressSanitizer, not under qemu, not on macOS.
bool limits_memory();

}  // namespace stagecraft
