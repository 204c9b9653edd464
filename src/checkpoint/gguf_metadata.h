#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/byte_reader.h"

namespace stagecraft {

// The metadata of a GGUF file: keys such as "llama.block_count", each with a typed value. Texts and
// arrays are views into the mapped file.
//
// A question about a key throws Error "FILE: 'KEY': expected ..., found ..." where the value is of
// another type or out of range. Whole numbers may be stored in any integer type.
class GgufMetadata {
 public:
  GgufMetadata() = default;
  // Reads `count` pairs. Throws Error where one is cut short or of no known type, or a key comes
  // twice.
  GgufMetadata(ByteReader& reader, std::uint64_t count);

  bool has(std::string_view key) const { return values_.contains(key); }
  std::vector<std::string_view> keys() const;  // in order of their bytes

  std::size_t size(std::string_view key, std::size_t min, std::size_t max) const;
  std::optional<std::size_t> find_size(std::string_view key, std::size_t min,
                                       std::size_t max) const;
  double number(std::string_view key) const;  // finite
  double number(std::string_view key, double min, double max) const;
  bool flag_or(std::string_view key, bool fallback) const;
  std::string_view text(std::string_view key) const;
  std::string_view text_or(std::string_view key, std::string_view fallback) const;

  std::vector<std::string_view> texts(std::string_view key) const;
  std::vector<std::int64_t> integers(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;

  // False, 0, "" and "none", an empty array: what changes nothing where a key is not understood.
  bool is_neutral(std::string_view key) const;

  const std::string& file() const { return file_; }  // for errors

  // The Error "FILE: 'KEY': expected EXPECTED, found (the value)".
  [[noreturn]] void refuse(std::string_view key, std::string_view expected) const;

 private:
  // As the format numbers them.
  enum class Type : std::uint32_t {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    Text,
    Array,
    U64,
    I64,
    F64
  };
  struct Value {
    Type type = Type::U8;  // of an array: that of its elements
    bool is_array = false;
    std::uint64_t count = 1;
    std::span<const std::byte> bytes;  // the elements; each text has its length before it
  };

  static std::optional<std::size_t> width(Type type);
  static bool is_signed(Type type);
  static bool is_integer(Type type);
  static Type read_type(ByteReader& reader, const std::string& what);
  static Value read_value(ByteReader& reader, const std::string& what);
  static std::int64_t integer(const Value& value, std::size_t index);
  static double real(const Value& value, std::size_t index);
  static std::string_view first_text(std::span<const std::byte> bytes);
  const Value& at(std::string_view key) const;
  // The array of that key, or Error: expected `what`.
  const Value& array(std::string_view key, std::string_view what) const;
  static std::string describe(const Value& value);

  std::string file_;
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace stagecraft
