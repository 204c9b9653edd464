#pragma once

#include <string_view>

#include "text/jinja/tree.h"

namespace stagecraft::jinja {

// How deep expressions and statements may be nested, so that walking the tree cannot overflow the
// stack.
inline constexpr int kMaxNesting = 100;

// Parses a template into a tree. Throws SyntaxFailure with the line, what was expected and what was
// found.
Block parse(std::string_view source);

}  // namespace stagecraft::jinja
