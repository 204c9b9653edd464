#include "text/marked_text.h"

namespace stagecraft {

MarkedText MarkedText::typed(std::string_view text) {
  MarkedText result;
  result.append(text, true);
  return result;
}

void MarkedText::append(std::string_view bytes, bool typed) {
  if (bytes.empty()) return;
  const std::size_t begin = bytes_.size();
  bytes_ += bytes;
  if (!typed) return;
  if (!typed_.empty() && typed_.back().end == begin) {
    typed_.back().end = bytes_.size();
  } else {
    typed_.push_back({begin, bytes_.size()});
  }
}

void MarkedText::append_part(const MarkedText& other, std::size_t begin, std::size_t end) {
  other.for_each_stretch(begin, end,
                         [this](std::string_view bytes, bool typed) { append(bytes, typed); });
}

MarkedText MarkedText::part(std::size_t begin, std::size_t end) const {
  MarkedText result;
  result.append_part(*this, begin, end);
  return result;
}

}  // namespace stagecraft
