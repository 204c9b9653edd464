#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

namespace stagecraft::jinja {

// A function, and the name by which templates call it.
template <class Function>
using Named = std::pair<std::string_view, Function>;

// The function with this name, or nullptr if there is none.
template <class Function, std::size_t n>
Function look_up(const Named<Function> (&table)[n], std::string_view name) {
  for (const auto& [known, function] : table) {
    if (known == name) return function;
  }
  return nullptr;
}

}  // namespace stagecraft::jinja
