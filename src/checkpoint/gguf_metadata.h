#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/byte_reader.h"
#include "checkpoint/gguf_value.h"

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
  std::vector<bool> flags(std::string_view key) const;
  bool is_array(std::string_view key) const { return at(key).is_array(); }

  // False, 0, "" and "none", an empty array: what changes nothing where a key is not understood.
  bool is_neutral(std::string_view key) const;

  const std::string& file() const { return file_; }  // for errors

  // The Error "FILE: 'KEY': expected EXPECTED, found (the value)".
  [[noreturn]] void refuse(std::string_view key, std::string_view expected) const;

 private:
  const GgufValue& at(std::string_view key) const;
  // The array of that key, or Error: expected `what`.
  const GgufValue& array(std::string_view key, std::string_view what) const;
  // Its elements, each of a type that `is` knows.
  template <class T>
  std::vector<T> elements(std::string_view key, std::string_view what,
                          bool (GgufValue::*is)() const,
                          T (GgufValue::*element)(std::size_t) const) const;

  std::string file_;
  std::map<std::string, GgufValue, std::less<>> values_;
};

}  // namespace stagecraft
