#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace stagecraft {

bool is_terminal(std::FILE* stream);

// May this stream carry colours? Terminals only, and not where NO_COLOR (no-color.org) is set.
bool has_colour(std::FILE* stream);

// A remark to the person, one line on stderr; faint where colours are welcome.
void print_note(std::string_view text);

// Text that a model wrote, to stdout, to be seen at once. A terminal gets it without control
// characters (other than newline and tab): a model could steer it with them. Throws Error if it
// cannot be written.
void print_now(std::string_view text);

}  // namespace stagecraft
