#pragma once

#include <bitset>
#include <cstddef>
#include <vector>

namespace stagecraft {

// The processors that this process may run on, by the system's numbers, first one of each core,
// then their siblings (hyper-threads); empty where the system does not say.
std::vector<int> allowed_processors();

// The number of threads that is worth starting: one per core that this process may run on, fewer if
// its container has a smaller CPU quota. At least 1.
std::size_t usable_cores();

// The processor that the calling thread runs on at this moment; -1 where the system does not say.
int current_processor();

// Ties the calling thread to one processor, for as long as this lives: the thread that made it ends
// it. No effect where the system does not allow it.
class Pinned {
 public:
  explicit Pinned(int processor);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  std::bitset<1024> before_;  // where the thread might run; none: it was not tied
};

}  // namespace stagecraft
