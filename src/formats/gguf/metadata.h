#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/byte_reader.h"
#include "formats/gguf/value.h"

namespace stagecraft {

// The metadata of a GGUF file: keys such as "llama.block_count", each with a typed value. Texts and
// arrays are views into the mapped file.
//
// The functions that return a value throw Error "FILE: 'KEY': expected ..., found ..." if the value
// has another type or is out of range, and "FILE: 'KEY' is missing" if the key is missing and there
// is no default value. Whole numbers may be stored in any integer type.
class GgufMetadata {
 public:
  GgufMetadata() = default;
  // Reads `count` pairs. Throws Error if one is cut short or has an unknown type, or if a key
  // occurs twice.
  GgufMetadata(ByteReader& reader, std::uint64_t count);

  bool has(std::string_view key) const { return values_.contains(key); }
  std::vector<std::string_view> keys() const;  // in order of their bytes

  std::size_t size(std::string_view key, std::size_t min, std::size_t max) const;
  // A size of an architecture ("llama.attention.head_count"), from 1: one number, or an array with
  // the same number for each layer.
  std::size_t size_of_layers(std::string_view key, std::size_t max) const;
  std::optional<std::size_t> find_size(std::string_view key, std::size_t min,
                                       std::size_t max) const;
  // The id of a token, 0 to n_tokens - 1 (n_tokens: at least 1). nullopt if the key is missing or
  // has 4294967295, which some writers use for "none".
  std::optional<std::size_t> find_token_id(std::string_view key, std::size_t n_tokens) const;
  double number(std::string_view key) const;  // finite
  double number(std::string_view key, double min, double max) const;
  bool flag_or(std::string_view key, bool default_value) const;
  std::string_view text(std::string_view key) const;
  std::string_view text_or(std::string_view key, std::string_view default_value) const;

  std::vector<std::string_view> texts(std::string_view key) const;
  std::vector<std::int64_t> integers(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;
  std::vector<bool> flags(std::string_view key) const;
  bool is_array(std::string_view key) const { return at(key).is_array(); }
  const GgufValue& at(std::string_view key) const;

  // Whether the value is 0 or false.
  bool is_off(std::string_view key) const;
  // Whether the value is false, 0, "", "none" or an empty array. A key that is not understood
  // changes nothing if its value is neutral.
  bool is_neutral(std::string_view key) const;

  const std::string& file() const { return file_; }  // for errors

  // Throws Error "FILE: 'KEY': expected EXPECTED, found (the value)".
  [[noreturn]] void refuse(std::string_view key, std::string_view expected) const;

 private:
  // The value of the key if it is an array. Otherwise throws Error: expected `what`.
  const GgufValue& array(std::string_view key, std::string_view what) const;
  // The elements of that array. Throws Error unless their type passes `is`.
  template <class T>
  std::vector<T> elements(std::string_view key, std::string_view what,
                          bool (GgufValue::*is)() const,
                          T (GgufValue::*element)(std::size_t) const) const;

  std::string file_;
  std::map<std::string, GgufValue, std::less<>> values_;
};

}  // namespace stagecraft
