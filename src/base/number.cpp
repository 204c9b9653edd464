#include "base/number.h"

#include <locale.h>
#include <stdlib.h>
#if __has_include(<xlocale.h>)  // macOS
#include <xlocale.h>
#endif

namespace stagecraft {

std::optional<double> number_of(const std::string& text) {
  static const locale_t c_locale = ::newlocale(LC_ALL_MASK, "C", nullptr);
  char* end = nullptr;
  const double number = ::strtod_l(text.c_str(), &end, c_locale);
  if (text.empty() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace stagecraft
