#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stagecraft {

// Integers from `low` to `high` as a GBNF expression, without "+" and leading zeros. If one bound
// is missing, numbers have up to 16 digits. At least one bound must be given; `low` must not exceed
// `high`.
std::string integer_range_gbnf(std::optional<std::int64_t> low, std::optional<std::int64_t> high);

}  // namespace stagecraft
