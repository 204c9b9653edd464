#pragma once

#include <string>
#include <string_view>

namespace stagecraft {

// A part of a URI with the bytes that its percent-encoding stands for (RFC 3986, 2.1): "My%20Type"
// becomes "My Type". A % without two hexadecimal digits stays.
std::string percent_decoded(std::string_view text);

}  // namespace stagecraft
