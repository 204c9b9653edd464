#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stagecraft {

// The length in bytes (1 to 4) of the well-formed UTF-8 sequence that `text` begins with (Unicode
// 15, table 3-7: no overlong forms, no surrogates), or 0 if it begins with none.
std::size_t utf8_sequence_length(std::string_view text);

// Whether this byte of well-formed text is not the first one of its character.
constexpr bool utf8_is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

// Whether a terminal would obey the character that well-formed `text` begins with, and not show it:
// a control character (U+0000 to U+001F, U+007F to U+009F), or one that changes the direction of
// the text after it (U+202A to U+202E, U+2066 to U+2069).
bool utf8_controls_terminal(std::string_view text);

// The offset of the first byte that is not part of well-formed UTF-8, or npos if the whole text is.
std::size_t utf8_error_offset(std::string_view text);

// Throws Error if `text` is not well-formed UTF-8; `what` names the text in the message ("prompt").
void check_utf8(std::string_view what, std::string_view text);

// How many bytes at the end of `text` are the beginning of a well-formed sequence whose rest may
// still come (0 to 3). A stream must hold these bytes back.
std::size_t utf8_incomplete_tail(std::string_view text);

// `text` with every maximal subpart of a broken sequence replaced by U+FFFD (Unicode 15, table 3-8,
// as the WHATWG requires of decoders). The first three bytes of a character of four become one
// U+FFFD.
std::string utf8_with_replacements(std::string_view text);

}  // namespace stagecraft
