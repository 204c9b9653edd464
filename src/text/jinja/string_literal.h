#pragma once

#include <string>
#include <string_view>

namespace stagecraft::jinja {

// The content of a string literal with Python's escapes replaced: \n \t \' \x41 \u00e9 \101 ...
// Unknown escapes are left unchanged. Throws SyntaxFailure if an escape is incomplete or is not a
// character.
std::string unescape(std::string_view text, int line);

}  // namespace stagecraft::jinja
