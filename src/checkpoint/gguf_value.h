#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/byte_reader.h"

namespace stagecraft {

// One value of a GGUF file's metadata, where it lies in the mapped file: a number, a text, or an
// array of either.
class GgufValue {
 public:
  // Checks that all of it lies in the file. Throws Error "FILE: WHAT: ...".
  static GgufValue read(ByteReader& reader, const std::string& what);

  bool is_array() const { return is_array_; }
  std::uint64_t count() const { return count_; }  // of an array's elements; else 1
  // Of the value, or of the elements of an array.
  bool is_integer() const;  // of any size, with a sign or without
  bool is_number() const;
  bool is_flag() const { return type_ == Type::Bool; }
  bool is_text() const { return type_ == Type::Text; }

  // The element `index` of an array; for anything else, index 0 is the value. A number beyond int64
  // becomes -1, which no key accepts.
  std::int64_t integer(std::size_t index = 0) const;
  double number(std::size_t index = 0) const;
  bool flag(std::size_t index = 0) const { return bytes_[index] != std::byte{0}; }
  std::string_view text() const { return text_at(0); }
  // The text at this byte of an array's; the next one begins text_size() of it later.
  std::string_view text_at(std::size_t byte) const;
  static std::size_t text_size(std::string_view text);
  std::size_t n_bytes() const { return bytes_.size(); }

  std::string describe() const;  // for errors: "17", "'gpt2'", "an array of 3"

 private:
  // As the format numbers them.
  // clang-format off
  enum class Type : std::uint32_t {
    U8, I8, U16, I16, U32, I32, F32, Bool, Text, Array, U64, I64, F64
  };
  // clang-format on
  static Type read_type(ByteReader& reader, const std::string& what);
  static std::size_t width(Type type);  // in bytes; 0 for those that say it themselves

  Type type_ = Type::U8;  // of an array: that of its elements
  bool is_array_ = false;
  std::uint64_t count_ = 1;
  std::span<const std::byte> bytes_;  // the elements; each text has its length before it
};

}  // namespace stagecraft
