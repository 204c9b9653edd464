#pragma once

#include <string>

#include "base/json.h"

namespace stagecraft {

// Sentencepiece's way with spaces, as pre-tokenizer and as decoder: a visible mark for each.
struct MetaspaceOptions {
  enum class Prepend { kFirst, kNever, kAlways };

  // Reads also the older spelling, "add_prefix_space".
  static MetaspaceOptions read(const JsonNode& node);

  std::string replacement;  // one character, as UTF-8; mostly U+2581
  Prepend prepend = Prepend::kAlways;
  bool split = true;  // cut before every mark
};

}  // namespace stagecraft
