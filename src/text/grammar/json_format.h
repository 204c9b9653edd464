#pragma once

#include <string>
#include <string_view>

namespace stagecraft {

// A regular expression for the whole string, which json_pattern_gbnf reads, for a "format" of JSON
// Schema; "" if the format is not known. Every string of the expression has the format, except
// that an email or hostname may be too long. Known are date, time, date-time, duration, email,
// hostname, ipv4, ipv6 and uuid.
std::string json_format_pattern(std::string_view format);

}  // namespace stagecraft
