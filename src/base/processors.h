#pragma once

#include <bitset>
#include <cstddef>
#include <vector>

namespace stagecraft {

// The system's numbers of the processors that this process may run on: first one per core, then
// their siblings (hyper-threads). Empty if the system does not tell.
std::vector<int> allowed_processors();

// The number of threads that is worth starting: one per core that this process may run on, fewer if
// its container has a smaller CPU quota. At least 1.
std::size_t usable_cores();

// The processor that the calling thread runs on at this moment; -1 if the system does not tell.
int current_processor();

// Pins the calling thread to one processor, as long as this object exists. The same thread must
// destroy it. No effect if the system does not allow it.
class Pinned {
 public:
  explicit Pinned(int processor);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  std::bitset<1024> before_;  // where the thread could run; empty: it is not pinned
};

}  // namespace stagecraft
