#include "base/processors.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

namespace stagecraft {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The first of the processors that share a core with this one: itself if the system does not say.
int first_sibling(int processor) {
  const std::string list = first_line("/sys/devices/system/cpu/cpu" + std::to_string(processor) +
                                      "/topology/thread_siblings_list");  // "0,64" or "0-1"
  return list.empty() ? processor : std::atoi(list.c_str());
}

// A set of processors, by their numbers. affinity() returns those that the calling thread may run
// on; empty if the system does not tell.
using Processors = std::bitset<1024>;

Processors affinity() {
  Processors processors;
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return {};
  for (std::size_t i = 0; i < processors.size(); ++i) processors[i] = CPU_ISSET(i, &set);
#endif
  return processors;
}

// Returns whether it succeeded.
bool set_affinity([[maybe_unused]] const Processors& processors) {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  for (std::size_t i = 0; i < processors.size(); ++i) {
    if (processors[i]) CPU_SET(i, &set);
  }
  return ::sched_setaffinity(0, sizeof set, &set) == 0;
#else
  return false;
#endif
}

// The processors that this thread may run on: the first of each core, and the others.
struct ProcessorsByCore {
  std::vector<int> first, siblings;
};

ProcessorsByCore processors_by_core() {
  ProcessorsByCore by_core;
  std::vector<int> cores;
  const Processors allowed = affinity();
  for (int processor = 0; processor < static_cast<int>(allowed.size()); ++processor) {
    if (!allowed[processor]) continue;
    const int core = first_sibling(processor);
    const bool known = std::ranges::find(cores, core) != cores.end();
    (known ? by_core.siblings : by_core.first).push_back(processor);
    if (!known) cores.push_back(core);
  }
  return by_core;
}

// How many processors' time the container may use; 0: no limit. cgroup v2 has one file, "max
// 100000" or "150000 100000" (microseconds per period); v1 has two files.
double cpu_quota() {
  double allowed = 0.0, period = 0.0;
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  if (v2) {
    if (!(v2 >> allowed >> period)) return 0.0;
  } else {
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> allowed;
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period;
  }
  return allowed > 0.0 && period > 0.0 ? allowed / period : 0.0;
}

}  // namespace

std::vector<int> allowed_processors() {
  auto [processors, siblings] = processors_by_core();
  processors.insert(processors.end(), siblings.begin(), siblings.end());
  return processors;
}

std::size_t usable_cores() {
  std::size_t n = processors_by_core().first.size();
  if (n == 0) n = std::thread::hardware_concurrency();
  const double quota = cpu_quota();
  if (quota > 0.0) n = std::min(n, static_cast<std::size_t>(std::ceil(quota)));
  return std::max<std::size_t>(n, 1);
}

int current_processor() {
#if defined(__linux__)
  return ::sched_getcpu();
#else
  return -1;
#endif
}

Pinned::Pinned(int processor) : before_(affinity()) {
  if (!set_affinity(Processors().set(processor))) before_.reset();
}

Pinned::~Pinned() {
  if (before_.any()) set_affinity(before_);
}

}  // namespace stagecraft
