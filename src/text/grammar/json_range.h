#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stagecraft {

// Whole numbers from `low` to `high`, as an expression of GBNF: no sign but "-", no zeros in front.
// Without a bound, numbers of up to 16 digits. `low` is at most `high`; one of them is given.
std::string integer_range_gbnf(std::optional<std::int64_t> low, std::optional<std::int64_t> high);

}  // namespace stagecraft
