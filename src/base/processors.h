#pragma once

#include <cstddef>
#include <vector>

namespace stagecraft {

// The processors that this process may run on, by the system's numbers, first one of each core,
// then their siblings (hyper-threads); empty where the system does not say.
std::vector<int> allowed_processors();

// The number of threads that is worth starting: one per core that this process may run on, fewer if
// its container has a smaller CPU quota. At least 1.
std::size_t usable_cores();

// Ties the calling thread to one processor. No effect where the system does not allow it.
void pin_to(int processor);

}  // namespace stagecraft
