#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/byte_reader.h"

namespace stagecraft {

// The types of values, with the numbers that the format uses.
// clang-format off
enum class GgufValueType : std::uint32_t {
  U8, I8, U16, I16, U32, I32, F32, Bool, Text, Array, U64, I64, F64
};
// clang-format on

// One value of a GGUF file's metadata: a number, a flag, a text, or an array of one of these. It
// points into the mapped file, which must outlive it.
class GgufValue {
 public:
  // Reads a type and a value. Throws Error "FILE: WHAT: ..." if the type is unknown or the value
  // does not lie within the file.
  static GgufValue read(ByteReader& reader, const std::string& what);

  bool is_array() const { return is_array_; }
  std::uint64_t count() const { return count_; }  // the number of elements of an array, else 1
  // The type of the value, or of the elements of an array:
  bool is_integer() const;  // of any size, signed or unsigned
  bool is_number() const;
  bool is_flag() const { return type_ == Type::Bool; }
  bool is_text() const { return type_ == Type::Text; }

  // Element `index` of an array, or the value itself (index 0). The caller has checked the type and
  // the index. An integer beyond int64 becomes -1, which no key accepts.
  std::int64_t integer(std::size_t index = 0) const;
  double number(std::size_t index = 0) const;
  bool flag(std::size_t index = 0) const { return bytes_[index] != std::byte{0}; }
  std::string_view text() const { return text_at(0); }
  // The text at this byte of an array. The next text begins text_size(text) bytes later.
  std::string_view text_at(std::size_t byte) const;
  static std::size_t text_size(std::string_view text);
  std::size_t n_bytes() const { return bytes_.size(); }

  // For a writer: the type of the value or of the elements, and their bytes as the file has them.
  GgufValueType type() const { return type_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  std::string describe() const;  // for errors: "17", "'gpt2'", "an array of 3"

 private:
  using Type = GgufValueType;
  static Type read_type(ByteReader& reader, const std::string& what);
  static std::size_t width(Type type);  // in bytes; 0 for texts and arrays, which store their size

  Type type_ = Type::U8;  // for an array, the type of its elements
  bool is_array_ = false;
  std::uint64_t count_ = 1;
  std::span<const std::byte> bytes_;  // the elements; each text has its length before it
};

}  // namespace stagecraft
