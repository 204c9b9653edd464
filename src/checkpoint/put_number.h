#pragma once

#include <concepts>
#include <cstddef>
#include <string>

namespace stagecraft {

// Appends a number in little-endian order.
template <std::unsigned_integral T>
void put_number(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

}  // namespace stagecraft
