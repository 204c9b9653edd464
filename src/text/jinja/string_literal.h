#pragma once

#include <string>
#include <string_view>

namespace stagecraft::jinja {

// What stands between the quotes of a string, with Python's escapes undone: \n \t \' \x41 \u00e9
// \101 ...; one that means nothing stays as it is. Throws SyntaxFailure where an escape is cut
// short or gives no character.
std::string unescape(std::string_view text, int line);

}  // namespace stagecraft::jinja
