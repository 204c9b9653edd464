#pragma once

#include "base/thread_pool.h"
#include "operators/kernels/kernels.h"

namespace stagecraft {

// The limits of this machine with these threads. measure_ceilings takes a second or more and 256
// MiB of memory. Throws std::bad_alloc.
struct Ceilings {
  double operations[kActivationTypes];  // per second, for rows of each ActivationType; a
                                        // multiply-add is two
  double read;                          // bytes per second from memory that is not in a cache
};
Ceilings measure_ceilings(const Kernels& kernels, ThreadPool& threads);

}  // namespace stagecraft
