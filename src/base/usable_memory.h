#pragma once

#include <filesystem>

namespace stagecraft {

// The bytes of memory that this process may use: those of the machine, fewer if its container has a
// smaller limit. 0: the system does not tell.
//
//   cgroups  where the system shows the limits of control groups
double usable_memory(const std::filesystem::path& cgroups = "/sys/fs/cgroup");

}  // namespace stagecraft
