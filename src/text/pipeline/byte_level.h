#pragma once

#include <optional>
#include <string>
#include <string_view>

// GPT-2's alphabet: 256 printable characters, one per byte, so that a vocabulary of text can
// contain any bytes. Bytes that are printable in Latin-1 stand for themselves, the others become
// U+0100 and up (openai/gpt-2, src/encoder.py, bytes_to_unicode).
namespace stagecraft {

// Appends the character of each byte.
void append_byte_level(std::string& text, std::string_view bytes);

// The bytes that the characters of `text` stand for, or nullopt if one of them is not in the
// alphabet. `text` may be any bytes.
std::optional<std::string> bytes_of_byte_level(std::string_view text);

}  // namespace stagecraft
