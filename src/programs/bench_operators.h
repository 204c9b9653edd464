#pragma once

#include "base/json.h"

namespace stagecraft {

// Prints how fast the kernels of the linear maps are on one thread, beside what the processor could
// do, measured in the same run. Returns the same, one record for each product that was timed.
Json bench_operators();

}  // namespace stagecraft
