#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace stagecraft {

// True if this stream may carry colours: it is a terminal, or a pager shows it in one (see
// Terminal), this terminal is not "dumb", and NO_COLOR (no-color.org) is not set.
bool has_colour(std::FILE* stream);

// What standard output can display.
struct Terminal {
  std::size_t width = 80;  // columns; 80 if stdout is not a terminal
  bool utf8 = false;       // decided by the locale: LC_ALL, LC_CTYPE, LANG
  bool color = false;      // has_colour(stdout)

  // ./stage shows long output through a pager. Then stdout is a pipe, and the variable
  // STAGECRAFT_PAGED says how many columns the terminal behind it has.
  static Terminal of_stdout();

  // `text` in bold or faint; unchanged if there is no colour.
  std::string bold(std::string_view text) const;
  std::string dim(std::string_view text) const;
};

// A token's text with invisible characters made visible: a space as a dot, a newline as an arrow, a
// byte that is not a character as <e4>.
std::string visible(std::string_view text, bool utf8);

// The number of columns of `text`: 2 per Chinese character, 0 per combining mark.
std::size_t display_width(std::string_view text);

// `text`, filled up with spaces behind it or before it, or cut with a mark at its end.
std::string pad_right(std::string_view text, std::size_t columns);
std::string pad_left(std::string_view text, std::size_t columns);
std::string cut_to(std::string_view text, std::size_t columns, bool utf8);

// A bar of `fraction` (0 to 1) times `columns`, in eighths of a column if the terminal shows UTF-8.
// Empty if `fraction` is NaN or infinite.
std::string bar(double fraction, std::size_t columns, bool utf8);

}  // namespace stagecraft
