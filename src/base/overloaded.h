#pragma once

namespace stagecraft {

// For std::visit: one lambda per kind of a variant.
template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

}  // namespace stagecraft
