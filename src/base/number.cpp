#include "base/number.h"

#include <fmt/format.h>
#include <locale.h>
#include <stdlib.h>
#if __has_include(<xlocale.h>)  // macOS
#include <xlocale.h>
#endif

#include "base/ascii.h"

namespace stagecraft {

std::optional<double> number_of(const std::string& text) {
  static const locale_t c_locale = ::newlocale(LC_ALL_MASK, "C", nullptr);
  char* end = nullptr;
  const double number = ::strtod_l(text.c_str(), &end, c_locale);
  if (text.empty() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<double> decimal_of(const std::string& text) {
  const bool begins_well = !text.empty() && (is_ascii_digit(text[0]) || text[0] == '.');
  const bool is_decimal = text.find_first_not_of("0123456789.eE+-") == std::string::npos;
  return begins_well && is_decimal ? number_of(text) : std::nullopt;
}

std::string grouped(std::size_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string counted(std::size_t n, std::string_view noun) {
  return counted(n, noun, std::string(noun) + "s");
}

std::string counted(std::size_t n, std::string_view one, std::string_view several) {
  return fmt::format("{} {}", n, n == 1 ? one : several);
}

}  // namespace stagecraft
