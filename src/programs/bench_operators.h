#pragma once

#include <nlohmann/json_fwd.hpp>

namespace stagecraft {

// Prints the speed of the linear layers' kernels on one thread, beside what the processor can do,
// measured in the same run. Returns the same figures: one record per timed product.
nlohmann::json bench_operators();

}  // namespace stagecraft
