#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

// `text`, which must be UTF-8, as a GBNF literal.
std::string gbnf_literal(std::string_view text);

// A choice between these expressions: "(a | b)".
std::string gbnf_choice(const std::vector<std::string>& ways);

}  // namespace stagecraft
