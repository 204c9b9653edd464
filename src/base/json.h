#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace stagecraft {

struct JsonData;  // the contents of a Json; defined in json.cpp

// A value in a Json: cheap to copy, and valid as long as the Json. Each accessor that names a type
// throws Error if the value has another type. The message has the file, the path of the value, what
// was expected and what was found.
class JsonNode {
 public:
  bool is_null() const;
  bool is_boolean() const;
  bool is_integer() const;  // of 64 bits
  bool is_whole() const;    // an integer from 0 to 2^64 - 1
  bool is_number() const;
  bool is_string() const;
  bool is_array() const;
  bool is_object() const;

  bool boolean() const;
  std::int64_t integer() const;
  std::uint64_t whole() const;
  double number() const;  // also for an integer
  std::string_view string() const;

  // The member `key` of this object. at() throws Error if it is missing; find() returns nullopt if
  // it is missing or null.
  JsonNode at(std::string_view key) const;
  std::optional<JsonNode> find(std::string_view key) const;
  // These two treat null as any other value: member() returns nullopt only if it is missing.
  std::optional<JsonNode> member(std::string_view key) const;
  bool contains(std::string_view key) const;
  bool boolean_or(std::string_view key, bool default_value) const;

  // Whether both are the same value. 1 equals 1.0, and the order of members does not matter.
  friend bool operator==(JsonNode a, JsonNode b);

  // The elements of this array or the members of this object, in the order of the file.
  class Iterator;
  struct Range;
  Range elements() const;
  Range members() const;
  std::size_t size() const;      // of an array or object; 0 for other values
  std::string_view key() const;  // of a member

  // Throws the Error "FILE: PATH.TO.THIS: expected EXPECTED, found FOUND"; without `found`, this
  // value itself is described.
  [[noreturn]] void refuse(std::string_view expected) const;
  [[noreturn]] void refuse(std::string_view expected, std::string_view found) const;
  // "FILE: PATH.TO.THIS", for messages that are written later.
  std::string where() const;
  // The kind and the beginning of this value, for errors: "an array of 3".
  std::string describe() const;

 private:
  friend class Json;
  JsonNode(const JsonData* data, std::uint32_t index) : data_(data), index_(index) {}
  std::uint32_t index_of(std::string_view key) const;

  const JsonData* data_;
  std::uint32_t index_;
};

// A JSON text, read as a whole into one flat list of values. A tokenizer.json has a million values;
// one allocation per value would take most of the time of opening a model. The numbers of bytes,
// values and nested levels are limited, because a text may be hostile.
class Json {
 public:
  // Reads `text`; `where` names it in errors ("models/story/config.json"). Throws Error if it is
  // not JSON (RFC 8259, UTF-8), too large, or has a key twice in one object.
  Json(std::string_view text, std::string where);
  Json(Json&&) noexcept;
  Json& operator=(Json&&) noexcept;
  ~Json();

  JsonNode root() const;

  // Four times the largest tokenizer.json in use (Gemma 3: 33 MB, 1.8 million values).
  static constexpr std::size_t kMaxBytes = std::size_t{128} << 20;
  static constexpr std::size_t kMaxValues = std::size_t{8} << 20;
  static constexpr std::size_t kMaxDepth = 64;

 private:
  friend class JsonBuilder;
  explicit Json(std::unique_ptr<JsonData> data);
  std::unique_ptr<JsonData> data_;
};

// Builds a Json value by value, without parsing a text. It describes files of other formats as if
// they were JSON files. The same limits hold, and the same Errors are thrown.
//
//   JsonBuilder json("model.gguf: tokenizer");
//   json.object([&] {
//     json.key("type").text("BPE");
//     json.key("merges").array([&] { json.text("a b"); });
//   });
//   return json.take();
class JsonBuilder {
 public:
  explicit JsonBuilder(std::string where);
  ~JsonBuilder();

  // Sets the key of the member that the next call adds. In an object, each value needs a key.
  JsonBuilder& key(std::string_view key);  // UTF-8
  void text(std::string_view value);       // UTF-8
  void integer(std::int64_t value);
  void boolean(bool value);
  void null();
  void json(std::string_view text);  // a value of any kind, written as JSON
  template <class Add>
  void object(Add add_members) {
    begin_object();
    add_members();
    end();
  }
  template <class Add>
  void array(Add add_elements) {
    begin_array();
    add_elements();
    end();
  }

  Json take();  // call it once, at the end

 private:
  void begin_object();
  void begin_array();
  void end();

  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// Reads a JSON text that must be one object. Throws the errors of Json's constructor.
Json parse_json_object(std::string_view text, const std::string& where);

// These return `value` if it has the right type and is in [min, max]; otherwise they throw Error
// "where: 'key': expected ..., found ...". max = SIZE_MAX: no upper limit. json_size refuses 1.0,
// because no writer of such files writes it.
std::size_t json_size(JsonNode value, const std::string& where, std::string_view key,
                      std::size_t min, std::size_t max);
double json_number(JsonNode value, const std::string& where, std::string_view key, double min,
                   double max);
bool json_bool(JsonNode value, const std::string& where, std::string_view key);
std::string json_string(JsonNode value, const std::string& where, std::string_view key);

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
