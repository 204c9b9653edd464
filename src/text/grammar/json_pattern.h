#pragma once

#include <string>
#include <string_view>

namespace stagecraft {

// Writes the "pattern" of a JSON Schema, a regular expression, as GBNF. The result describes the
// characters between the quotes of a JSON string, escaped by the rules of JSON. It uses the rule
// `char`, which the caller defines: any one character of a JSON string.
//
// Known: characters, '.', classes with \d \w \s (of ASCII), groups ( ) and (?: ), |, and * + ?
// {m,n}; ^ at the beginning and $ at the end. Without them, any characters may come before and
// after the match. Throws Error "column N: ..." for everything else.
std::string json_pattern_gbnf(std::string_view pattern);

}  // namespace stagecraft
