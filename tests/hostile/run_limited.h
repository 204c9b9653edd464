#pragma once

#include <string>
#include <vector>

namespace stagecraft {

struct LimitedRun {
  int code = -1;  // the exit code; -1 if a signal or the clock ended it, and `ended_by` says which
  std::string ended_by;
  std::string out, err;
};

// Runs `stagecraft` with these arguments, no terminal and no input, in little memory (1 GB of
// addresses, which is what a claim would have to be mapped into; not so under AddressSanitizer) and
// little time.
LimitedRun run_limited(const std::vector<std::string>& arguments);

// Whether that limit holds: not under AddressSanitizer, not under qemu, not on macOS.
bool limits_memory();

}  // namespace stagecraft
