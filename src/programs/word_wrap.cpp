#include "programs/word_wrap.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

#include "base/utf8.h"

namespace stagecraft {

std::size_t character_width(std::string_view character) {
  utf8proc_int32_t code_point = 0;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(character.data()),
                   static_cast<utf8proc_ssize_t>(character.size()), &code_point);
  return static_cast<std::size_t>(std::max(0, utf8proc_charwidth(code_point)));
}

void WordWrap::start_line() {
  column_ = word_width_ = 0;
  word_.clear();
}

std::string WordWrap::next(std::string_view text) {
  if (width_ == 0) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(1, utf8_sequence_length(text));
    const std::string_view character = text.substr(0, length);
    text.remove_prefix(length);
    if (character == "\n") {
      out += character;
      start_line();
      continue;
    }
    const bool is_space = character == " " || character == "\t";
    const std::size_t width = is_space ? 1 : character_width(character);
    // The last column stays free: after it is written, the cursor does not move on, so the escape
    // sequence "n columns back" would go one column too far.
    if (column_ + width >= width_) {
      if (is_space) {  // the line break replaces the space
        out += '\n';
        start_line();
        continue;
      }
      const bool moves = word_width_ < column_;  // a word as wide as the line is broken instead
      if (moves && word_width_ > 0) out += fmt::format("\x1b[{}D\x1b[K", word_width_);
      out += '\n';
      if (!moves) start_line();
      out += word_;
      column_ = word_width_;
    }
    out += is_space ? " " : character;
    column_ += width;
    if (is_space || width > 1) {  // a line may also end after a Chinese character
      word_.clear();
      word_width_ = 0;
    } else {
      word_ += character;
      word_width_ += width;
    }
  }
  return out;
}

std::string fitted_help(std::string_view help, std::size_t columns) {
  constexpr std::size_t kDescription = 30;  // the column where CLI11 begins descriptions
  std::string fitted;
  while (!help.empty()) {
    const std::size_t end = std::min(help.find('\n'), help.size() - 1);
    std::string_view line = help.substr(0, end + 1);
    help.remove_prefix(line.size());
    const std::size_t indent = line.starts_with("  ") ? kDescription : 2;
    std::size_t room = columns;
    while (columns > indent && line.size() > room + 1) {
      const std::size_t gap = line.substr(0, room + 1).rfind(' ');
      const bool breaks = gap != std::string_view::npos &&
                          line.substr(0, gap).find_first_not_of(' ') != std::string_view::npos;
      if (!breaks) break;
      fitted += fmt::format("{}\n{:{}}", line.substr(0, gap), "", indent);
      line.remove_prefix(gap + 1);
      room = columns - indent;
    }
    fitted += line;
  }
  return fitted;
}

}  // namespace stagecraft
