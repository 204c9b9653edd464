#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// What tokenizers ask about characters. Text given to these functions is well-formed UTF-8; whoever
// takes text from outside checks it first (base/utf8.h).
namespace stagecraft {

struct CodePoint {
  char32_t value;
  std::size_t length;  // in bytes, 1 to 4
};

// The first character of `text`, which must not be empty.
CodePoint first_code_point(std::string_view text);
// The last one.
CodePoint last_code_point(std::string_view text);
void append_utf8(std::string& text, char32_t c);

// How many bytes of `text`, which must not be empty, its first extended grapheme cluster has (UAX
// 29).
std::size_t grapheme_length(std::string_view text);

// The Unicode property White_Space (PropList.txt), which is Rust's char::is_whitespace.
bool is_whitespace(char32_t c);
// General categories Nd, Nl, No: Rust's char::is_numeric.
bool is_numeric(char32_t c);
// General categories M*.
bool is_mark(char32_t c);
// General categories P*, and ASCII's symbols ($+<=>^`|~).
bool is_punctuation(char32_t c);
// What \w matches in Rust's regex crate (UTS 18, annex C): Alphabetic, M, Nd, Pc, Join_Control.
bool is_word(char32_t c);

enum class NormalForm { kNFC, kNFD, kNFKC, kNFKD };
// Unicode normalization (UAX 15) by Unicode 9, as Hugging Face tokenizers has it. Time is O(n log
// n) on any text, runs of combining marks included.
std::string normalize(std::string_view text, NormalForm form);

// Every character mapped by itself, as Rust's char::to_lowercase: a final sigma is not special.
std::string lowercase(std::string_view text);

}  // namespace stagecraft
