#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stagecraft {

// Decodes base64 (RFC 4648, section 4, padding required); nullopt if `text` is not valid base64.
std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace stagecraft
