#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stagecraft {

// Reads all of `text` as a number, as strtod does in the C locale; nullopt if it is none. strtod
// itself obeys the locale of the host program, and some of these write 0,5 for 0.5.
std::optional<double> number_of(const std::string& text);

// Reads all of `text` as a number: decimal digits, perhaps with a point and an exponent, as in 12,
// .5 or 1e-3. nullopt for any other text, such as 0x10, ' 3', +3, -3 or inf.
std::optional<double> decimal_of(const std::string& text);

// "1,234,567"
std::string grouped(std::size_t n);

// "1 thread", "4 threads"
std::string counted(std::size_t n, std::string_view noun);
// "1 matrix", "4 matrices"
std::string counted(std::size_t n, std::string_view one, std::string_view several);

// Reads all of `text` as an integer: digits of this base, for a signed type with or without a '-'
// before them. nullopt for any other text, and for a number that T cannot hold.
template <std::integral T>
std::optional<T> integer_of(std::string_view text, int base = 10) {
  T value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, failed] = std::from_chars(text.data(), last, value, base);
  if (failed != std::errc() || end != last) return std::nullopt;
  return value;
}

}  // namespace stagecraft
