#pragma once

#include <string>
#include <string_view>

// Strings are UTF-8 here and sequences of characters to a template, as in Python.
namespace stagecraft::jinja {

bool is_space(char32_t c);      // str.isspace
bool is_printable(char32_t c);  // str.isprintable, which repr() asks
bool is_letter(char32_t c);     // str.isalpha
bool is_digit(char32_t c);      // str.isdecimal
char32_t upper(char32_t c);
char32_t lower(char32_t c);
// Appends c in that case. One character gives one, except "ß", which gives "SS", or "Ss" where the
// rest of the word is not upper case; Python knows a hundred rarer ones (ligatures, final sigma).
void append_in_case(std::string& text, char32_t c, bool up, bool whole_word_up);

std::size_t count_characters(std::string_view text);
// The byte at which character `index` begins; text.size() for those behind the end.
std::size_t byte_of_character(std::string_view text, std::size_t index);

// Bytes of white space at the beginning and at the end.
std::size_t leading_space(std::string_view text);
std::size_t trailing_space(std::string_view text);

}  // namespace stagecraft::jinja
