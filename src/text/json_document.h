#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace stagecraft {

class JsonDocument;
struct JsonData;  // what a document holds; only json_document.cpp knows

// A value in a JsonDocument: as cheap to copy as a pointer, and valid as long as the document. Each
// accessor that names a type throws Error saying the file, the way to this value, what was expected
// and what was found.
class JsonNode {
 public:
  bool is_null() const;
  bool is_string() const;
  bool is_array() const;

  bool boolean() const;
  std::int64_t integer() const;
  double number() const;  // also of an integer
  std::string_view string() const;

  // The member `key` of this object: throws if it is missing / nullopt if it is missing or null.
  JsonNode at(std::string_view key) const;
  std::optional<JsonNode> find(std::string_view key) const;
  bool boolean_or(std::string_view key, bool fallback) const;

  // The elements of this array or the members of this object, in the order of the file.
  class Iterator;
  struct Range;
  Range elements() const;
  Range members() const;
  std::size_t size() const;      // of an array, an object
  std::string_view key() const;  // of a member

  // Throws the Error "FILE: WAY.TO.THIS: expected EXPECTED, found FOUND"; without `found`, this
  // value itself is described.
  [[noreturn]] void refuse(std::string_view expected) const;
  [[noreturn]] void refuse(std::string_view expected, std::string_view found) const;
  // "FILE: WAY.TO.THIS", for messages that are written later.
  std::string where() const;

 private:
  friend class JsonDocument;
  JsonNode(const JsonData* data, std::uint32_t index) : data_(data), index_(index) {}
  std::string describe() const;

  const JsonData* data_;
  std::uint32_t index_;
};

// A JSON file read whole into one flat list of values: a tokenizer.json has a million of them, and
// one allocation each would be most of the time that opening a model takes. Hostile files are
// bounded: in bytes, in values and in nesting.
class JsonDocument {
 public:
  // Throws Error naming the file if it cannot be read, is too large or is not JSON (RFC 8259,
  // UTF-8), or has a key twice in one object.
  static JsonDocument read(const std::filesystem::path& path);
  // The same of a text; `name` stands for the file in errors.
  static JsonDocument parse(std::string_view text, std::string name);

  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();

  JsonNode root() const;

  // Four times what the largest tokenizer.json in use has (Gemma 3: 33 MB, 1.8 million values).
  static constexpr std::size_t kMaxBytes = std::size_t{128} << 20;
  static constexpr std::size_t kMaxValues = std::size_t{8} << 20;
  static constexpr std::size_t kMaxDepth = 100;

 private:
  explicit JsonDocument(std::unique_ptr<JsonData> data);
  std::unique_ptr<JsonData> data_;
};

class JsonNode::Iterator {
 public:
  JsonNode operator*() const { return JsonNode(data_, index_); }
  Iterator& operator++();
  bool operator!=(const Iterator& other) const { return index_ != other.index_; }

 private:
  friend class JsonNode;
  Iterator(const JsonData* data, std::uint32_t index) : data_(data), index_(index) {}

  const JsonData* data_;
  std::uint32_t index_;
};

struct JsonNode::Range {
  Iterator first;
  Iterator last;
  Iterator begin() const { return first; }
  Iterator end() const { return last; }
};

}  // namespace stagecraft
