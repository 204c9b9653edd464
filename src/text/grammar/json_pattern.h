#pragma once

#include <string>
#include <string_view>

namespace stagecraft {

// Writes a "pattern" of a JSON Schema, which is a regular expression, as GBNF. The result describes
// the characters between the quotes of a JSON string, escaped as in JSON. It uses the rule `char`,
// which the caller defines: any one character of a JSON string.
//
// Supported: characters, '.', classes with \d \w \s (as in ECMA-262: \d and \w are ASCII), groups
// ( ) and (?: ), |, * + ? {m,n}, ^ at the beginning and $ at the end. Without ^ or $, any
// characters may come before or after the match. Throws Error "column N: ..." for everything else.
std::string json_pattern_gbnf(std::string_view pattern);

}  // namespace stagecraft
