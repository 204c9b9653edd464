#pragma once

#include <nlohmann/json_fwd.hpp>

namespace stagecraft {

// Prints how fast the kernels of the linear maps are on one thread, beside what the processor could
// do, measured in the same run. Returns the same, one record for each product that was timed.
nlohmann::json bench_operators();

}  // namespace stagecraft
