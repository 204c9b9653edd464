#include "base/percent_encoding.h"

#include <cstddef>

#include "base/number.h"

namespace stagecraft {

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view digits = text.substr(i + 1, 2);
    const auto byte = integer_of<unsigned char>(digits, 16);
    if (text[i] == '%' && digits.size() == 2 && byte) {
      decoded += static_cast<char>(*byte);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

}  // namespace stagecraft
