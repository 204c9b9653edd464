#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Properties of characters that tokenizers need. All text passed to these functions must be valid
// UTF-8. Callers check text from outside first (base/utf8.h).
namespace stagecraft {

// Whether the number stands for a character: surrogates do not.
constexpr bool is_character(std::uint32_t c) { return c < 0xd800 || (c > 0xdfff && c < 0x110000); }

struct CodePoint {
  char32_t value;
  std::size_t length;  // in bytes, 1 to 4
};

// The first character of `text`, which must not be empty.
CodePoint first_code_point(std::string_view text);
inline bool is_one_character(std::string_view text) {
  return !text.empty() && first_code_point(text).length == text.size();
}
// The last character of `text`, which must not be empty.
CodePoint last_code_point(std::string_view text);
void append_utf8(std::string& text, char32_t c);
std::size_t count_characters(std::string_view text);

// White space at the ends of `text`, in bytes.
std::size_t length_of_leading_blanks(std::string_view text);
std::size_t begin_of_trailing_blanks(std::string_view text);

// The length in bytes of the first extended grapheme cluster (UAX 29) of `text`, which must not be
// empty.
std::size_t grapheme_length(std::string_view text);

// The Unicode property White_Space (PropList.txt), the same as Rust's char::is_whitespace.
bool is_whitespace(char32_t c);
// General categories L*: Python's str.isalpha.
bool is_letter(char32_t c);
// General category Nd: Python's str.isdecimal.
bool is_decimal(char32_t c);
// General categories Nd, Nl, No: Rust's char::is_numeric.
bool is_numeric(char32_t c);
// General categories M* of Unicode 9: what Hugging Face's StripAccents drops.
bool is_mark_of_unicode_9(char32_t c);
// General categories P*, and ASCII symbols ($+<=>^`|~).
bool is_punctuation(char32_t c);
// What \w matches in Rust's regex crate (UTS 18, annex C): Alphabetic, M, Nd, Pc, Join_Control.
bool is_word(char32_t c);
// A space, or none of the general categories C* and Z*: Python's str.isprintable.
bool is_printable(char32_t c);

// The character in another case if that is a single character, otherwise `c`.
char32_t to_upper(char32_t c);
char32_t to_lower(char32_t c);

enum class NormalForm { kNFC, kNFD, kNFKC, kNFKD };
// Unicode normalization (UAX 15) of Unicode 9, as in Hugging Face tokenizers. The time is O(n log
// n) for any text, even with long runs of combining marks.
std::string normalize(std::string_view text, NormalForm form);

// Maps each character by itself, like Rust's char::to_lowercase: a final sigma is not treated
// specially.
std::string lowercase(std::string_view text);

}  // namespace stagecraft
