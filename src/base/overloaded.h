#pragma once

namespace stagecraft {

// For std::visit: one lambda per kind of a variant.
template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;  // Clang 16 does not deduce it for aggregates

}  // namespace stagecraft
