#pragma once

#include <optional>
#include <string>

namespace stagecraft {

// The number that the whole of `text` is, as strtod reads it in the C locale; nullopt if it is
// none. strtod itself obeys the locale of the host program, and some of these write 0,5 for 0.5.
std::optional<double> number_of(const std::string& text);

}  // namespace stagecraft
