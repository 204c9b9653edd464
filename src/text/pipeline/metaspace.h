#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace stagecraft {

// Sentencepiece's visible mark for spaces.
inline constexpr std::string_view kSpaceMark = "\u2581";
// Appends `text` with a mark for each space.
void append_marked(std::string& out, std::string_view text, std::string_view mark = kSpaceMark);

// How the mark is used in a pre-tokenizer and in a decoder.
struct MetaspaceOptions {
  enum class Prepend { kFirst, kNever, kAlways };

  // Also reads the older option "add_prefix_space".
  static MetaspaceOptions read(const JsonNode& node);

  std::string replacement;  // one character, as UTF-8; usually U+2581
  Prepend prepend = Prepend::kAlways;
  bool split = true;  // cut before every mark
};

}  // namespace stagecraft
