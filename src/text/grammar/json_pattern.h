#pragma once

#include <string>
#include <string_view>

namespace stagecraft {

// The "pattern" of a string in a JSON Schema as GBNF: the characters between the quotes of the JSON
// string, escaped as JSON wants it. Rules that it uses: `char`, any one character of a JSON string.
//
// Known: characters, '.', classes with \d \w \s (of ASCII), groups ( ) and (?: ), |, and * + ?
// {m,n}; ^ at the beginning and $ at the end, without which anything may stand there. Throws Error
// saying "column N: ..." for everything else.
std::string json_pattern_gbnf(std::string_view pattern);

}  // namespace stagecraft
