#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stagecraft {

// The columns of a terminal that a character takes: 2 for most Chinese ones.
std::size_t character_width(std::string_view character);

// Breaks a text between words while it arrives piece by piece. Nothing is held back: a word that
// reaches the edge is erased there and printed again on the next line.
class WordWrap {
 public:
  // width: columns of the terminal; 0: there is none, and no line is broken.
  explicit WordWrap(std::size_t width) : width_(width) {}

  // What to send to the terminal for the next piece of text, which is UTF-8 without control
  // characters other than newline and tab.
  std::string next(std::string_view text);

 private:
  void start_line();

  std::size_t width_;
  std::size_t column_ = 0;
  std::string word_;  // the part of the current word that is on this line
  std::size_t word_width_ = 0;
};

// The lines of a command's help, each at most `columns` wide where words allow it; the rest of a
// line that is broken stands below its description. columns 0: as it is.
std::string fitted_help(std::string_view help, std::size_t columns);

}  // namespace stagecraft
