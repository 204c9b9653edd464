#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "text/jinja/tree.h"

namespace stagecraft::jinja {

// How deep expressions and statements may be nested, so that walking the tree cannot overflow the
// stack.
inline constexpr int kMaxNesting = 100;

using Names = std::set<std::string, std::less<>>;

struct Parsed {
  Block block;
  Names names;  // of all variables that expressions read, those that the template sets too
};

// Parses a template into a tree. Throws SyntaxFailure with the line, what was expected and what was
// found.
Parsed parse(std::string_view source);

}  // namespace stagecraft::jinja
