#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stagecraft {

// What standard output can show.
struct Terminal {
  std::size_t width = 80;  // columns; 80 where there is no terminal
  bool utf8 = false;       // by the locale: LC_ALL, LC_CTYPE, LANG
  bool color = false;      // a terminal that is not "dumb", and no NO_COLOR

  // ./stage shows long output through a pager. Then stdout is a pipe, and the variable
  // STAGECRAFT_PAGED says how many columns the terminal behind it has.
  static Terminal of_stdout();

  // `text` set off from the rest, or as it is where there is no colour.
  std::string bold(std::string_view text) const;
  std::string dim(std::string_view text) const;
};

// A token's text with what cannot be seen made visible: a space as a dot, a newline as an arrow, a
// byte that is no character as <e4>.
std::string visible(std::string_view text, bool utf8);

// How many columns `text` takes: 2 for a Chinese character, 0 for a combining mark.
std::size_t display_width(std::string_view text);

// `text` and as many spaces as it lacks to `columns`; the other way round; cut to fit.
std::string pad_right(std::string_view text, std::size_t columns);
std::string pad_left(std::string_view text, std::size_t columns);
std::string cut_to(std::string_view text, std::size_t columns, bool utf8);

// A bar as long as `share` (0 to 1) of `columns`, in eighths of a column where there is UTF-8. ""
// for a share that is NaN or infinite.
std::string bar(double share, std::size_t columns, bool utf8);

}  // namespace stagecraft
