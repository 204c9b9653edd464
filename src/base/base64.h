#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stagecraft {

// The bytes that a text in base64 (RFC 4648, section 4, padding and all) stands for; nullopt if it
// is none.
std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace stagecraft
