#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stagecraft {

// How many terminal columns a character takes: 2 for most Chinese characters.
std::size_t character_width(std::string_view character);

// Breaks text between words while it arrives piece by piece. Text is printed at once: if a word
// does not fit, its printed part is erased and printed again on the next line.
class WordWrap {
 public:
  // width: columns of the terminal; 0: unknown, and no line is broken.
  explicit WordWrap(std::size_t width) : width_(width) {}

  // Returns the bytes to print for the next piece of text. `text` is UTF-8 without control
  // characters other than newline and tab.
  std::string next(std::string_view text);

 private:
  void start_line();

  std::size_t width_;
  std::size_t column_ = 0;
  std::string word_;  // the part of the current word that is on this line
  std::size_t word_width_ = 0;
};

// A command's help text with lines of at most `columns` columns, if its words are short enough. The
// rest of a broken option is indented to the column of the descriptions. columns 0: `help`
// unchanged.
std::string fitted_help(std::string_view help, std::size_t columns);

}  // namespace stagecraft
