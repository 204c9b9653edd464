#pragma once

#include "base/thread_pool.h"
#include "operators/kernels/kernels.h"

namespace stagecraft {

// What this machine could do at most with these threads, measured now.
struct Ceilings {
  double operations[3];  // a second, for rows of each ActivationType; a multiply-add is two
  double read;           // bytes a second from memory beyond the caches
};
Ceilings measure_ceilings(const Kernels& kernels, ThreadPool& threads);

}  // namespace stagecraft
