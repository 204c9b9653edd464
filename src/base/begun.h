#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace stagecraft {

// The length of the longest suffix of `text` that is a prefix of `word`, but not the whole word. A
// stream must hold back this suffix until it is known whether the rest of the word follows. `word`
// must not be empty.
inline std::size_t begun(std::string_view text, std::string_view word) {
  for (std::size_t n = std::min(text.size(), word.size() - 1); n > 0; --n) {
    if (text.ends_with(word.substr(0, n))) return n;
  }
  return 0;
}

}  // namespace stagecraft
