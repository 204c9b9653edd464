#pragma once

#include <string_view>

#include "text/jinja/tree.h"

namespace stagecraft::jinja {

// How deep expressions and statements may lie in each other, so that walking them needs no more
// stack than there is.
inline constexpr int kMaxNesting = 100;

// The tree of a template. Throws SyntaxFailure with the line: what was expected and what was found.
Block parse(std::string_view source);

}  // namespace stagecraft::jinja
