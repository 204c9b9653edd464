#pragma once

#include <string>
#include <string_view>

// In C++, strings are UTF-8. A template sees them as sequences of characters, as in Python.
namespace stagecraft::jinja {

bool is_space(char32_t c);  // str.isspace
// Appends c in upper or lower case. One character gives one character, except "ß": it gives "SS",
// or "Ss" if the rest of the word is not upper case. Python has a hundred rarer exceptions
// (ligatures, final sigma).
void append_in_case(std::string& text, char32_t c, bool up, bool whole_word_up);

// The byte offset at which character `index` begins; text.size() if there are not so many
// characters.
std::size_t byte_of_character(std::string_view text, std::size_t index);

// The length in bytes of the white space at the beginning or at the end.
std::size_t leading_space(std::string_view text);
std::size_t trailing_space(std::string_view text);

}  // namespace stagecraft::jinja
