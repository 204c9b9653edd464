#include "base/usable_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace stagecraft {
namespace {

double machine_memory() {
  const double pages = static_cast<double>(::sysconf(_SC_PHYS_PAGES));
  const double bytes = static_cast<double>(::sysconf(_SC_PAGESIZE));
  return pages > 0.0 && bytes > 0.0 ? pages * bytes : 0.0;
}

// The limit of the container; 0: none. cgroup v2 has one file, "max" or a number of bytes; v1 has
// another one, whose number is larger than any memory if there is no limit.
double container_limit(const std::filesystem::path& cgroups) {
  double limit = 0.0;
  std::ifstream v2(cgroups / "memory.max");
  if (v2) {
    if (!(v2 >> limit)) return 0.0;
  } else {
    std::ifstream(cgroups / "memory/memory.limit_in_bytes") >> limit;
  }
  return std::max(limit, 0.0);
}

}  // namespace

double usable_memory(const std::filesystem::path& cgroups) {
  const double machine = machine_memory(), limit = container_limit(cgroups);
  if (machine == 0.0 || limit == 0.0) return std::max(machine, limit);
  return std::min(machine, limit);
}

}  // namespace stagecraft
