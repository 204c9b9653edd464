#include "text/json_document.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"

namespace stagecraft {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

enum class Type : std::uint8_t { kNull, kBoolean, kInteger, kFloat, kString, kArray, kObject };

// A piece of the arena that holds every string of the document.
struct Text {
  std::uint32_t offset = 0;
  std::uint32_t length = 0;
};

struct Value {
  Type type = Type::kNull;
  bool is_member = false;  // of an object, so that `key` counts
  std::uint32_t parent = kNone;
  std::uint32_t next = kNone;         // sibling
  std::uint32_t first_child = kNone;  // of an array or object, as is
  std::uint32_t n_children = 0;
  Text key = {};
  Text text = {};            // of a string; of an object, where `by_key` has its members
  std::int64_t integer = 0;  // of an integer or a boolean; the bits of a float
};

}  // namespace

struct JsonData {
  std::string file;
  std::string arena;
  std::vector<Value> values;
  std::vector<std::uint32_t> by_key;  // members of objects, in the order of their keys

  std::string_view text(Text piece) const {
    return std::string_view(arena).substr(piece.offset, piece.length);
  }
};

namespace {

// Receives the events of nlohmann's parser, which does not recurse, and appends values.
class Builder : public nlohmann::json::json_sax_t {
 public:
  explicit Builder(JsonData& data) : data_(data) {}

  // A member whose key another one has too, where that ended the parsing; else kNone.
  std::uint32_t given_twice() const { return given_twice_; }

  bool null() override { return append({}); }
  bool boolean(bool value) override {
    return append({.type = Type::kBoolean, .integer = value ? 1 : 0});
  }
  bool number_integer(number_integer_t value) override {
    return append({.type = Type::kInteger, .integer = value});
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (std::in_range<std::int64_t>(value)) {
      return append({.type = Type::kInteger, .integer = static_cast<std::int64_t>(value)});
    }
    return number_float(static_cast<double>(value), {});
  }
  bool number_float(number_float_t value, const string_t&) override {
    return append({.type = Type::kFloat, .integer = std::bit_cast<std::int64_t>(value)});
  }
  bool string(string_t& text) override {
    return append({.type = Type::kString, .text = store(text)});
  }
  bool binary(binary_t&) override { return false; }  // does not occur in JSON text
  bool key(string_t& text) override {
    key_ = store(text);
    return true;
  }
  bool start_object(std::size_t) override { return open(Type::kObject); }
  bool start_array(std::size_t) override { return open(Type::kArray); }
  bool end_object() override { return sort_members(open_.back().index) && close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception&) override {
    throw Error("{}: expected JSON in UTF-8, found an error at byte {}: '{}'", data_.file, position,
                printable(token.size() > 40 ? token.substr(token.size() - 40) : token));
  }

 private:
  struct Open {
    std::uint32_t index;       // of the array or object
    std::uint32_t last_child;  // so far
  };

  bool append(Value value) {
    if (data_.values.size() >= JsonDocument::kMaxValues) {
      throw Error("{}: expected at most {} values, found more", data_.file,
                  JsonDocument::kMaxValues);
    }
    const auto index = static_cast<std::uint32_t>(data_.values.size());
    if (!open_.empty()) {
      Open& open = open_.back();
      Value& parent = data_.values[open.index];
      value.parent = open.index;
      if (parent.type == Type::kObject) {
        value.is_member = true;
        value.key = key_;
      }
      (parent.n_children == 0 ? parent.first_child : data_.values[open.last_child].next) = index;
      ++parent.n_children;
      open.last_child = index;
    }
    data_.values.push_back(value);
    return true;
  }

  bool open(Type type) {
    if (open_.size() >= JsonDocument::kMaxDepth) {
      throw Error("{}: expected at most {} brackets one in another, found more", data_.file,
                  JsonDocument::kMaxDepth);
    }
    append({.type = type});
    open_.push_back({static_cast<std::uint32_t>(data_.values.size() - 1), kNone});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  struct Member {
    std::uint64_t beginning;  // of the key: tells most of them apart without a look at the text
    std::uint32_t index;
  };

  // Notes the members in the order of their keys, so that each is found without a look at all
  // others. False if a key is there twice.
  bool sort_members(std::uint32_t object) {
    const auto key = [&](const Member& one) { return data_.text(data_.values[one.index].key); };
    members_.clear();
    for (std::uint32_t at = data_.values[object].first_child; at != kNone;
         at = data_.values[at].next) {
      members_.push_back({beginning_of(data_.text(data_.values[at].key)), at});
    }
    std::ranges::sort(members_, [&](const Member& one, const Member& other) {
      if (one.beginning != other.beginning) return one.beginning < other.beginning;
      const int order = key(one).compare(key(other));
      return order != 0 ? order < 0 : one.index < other.index;
    });
    data_.values[object].text.offset = static_cast<std::uint32_t>(data_.by_key.size());
    for (const Member& member : members_) data_.by_key.push_back(member.index);
    const auto twice = std::ranges::adjacent_find(
        members_, [&](const Member& one, const Member& other) { return key(one) == key(other); });
    if (twice != members_.end()) given_twice_ = std::next(twice)->index;
    return given_twice_ == kNone;
  }

  // Its first bytes as a number that is as large as they are late in the order of texts.
  static std::uint64_t beginning_of(std::string_view key) {
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < sizeof number; ++i) {
      number = number << 8 | (i < key.size() ? static_cast<unsigned char>(key[i]) : 0u);
    }
    return number;
  }

  Text store(const std::string& text) {
    const Text piece{static_cast<std::uint32_t>(data_.arena.size()),
                     static_cast<std::uint32_t>(text.size())};
    data_.arena += text;
    return piece;
  }

  JsonData& data_;
  std::vector<Open> open_;
  std::vector<Member> members_;  // of the object that ends
  Text key_;
  std::uint32_t given_twice_ = kNone;
};

const char* name_of(Type type) {
  switch (type) {
    case Type::kNull:
      return "null";
    case Type::kBoolean:
      return "a boolean";
    case Type::kInteger:
      return "an integer";
    case Type::kFloat:
      return "a number that is no 64-bit integer";
    case Type::kString:
      return "a string";
    case Type::kArray:
      return "an array";
    case Type::kObject:
      return "an object";
  }
  return "?";
}

}  // namespace

// --- JsonDocument ---

JsonDocument::JsonDocument(std::unique_ptr<JsonData> data) : data_(std::move(data)) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

JsonDocument JsonDocument::read(const std::filesystem::path& path) {
  return parse(read_text_file(path, kMaxBytes), path.string());
}

JsonDocument JsonDocument::parse(std::string_view text, std::string name) {
  auto data = std::make_unique<JsonData>();
  data->file = std::move(name);
  data->arena.reserve(text.size() / 2);
  Builder builder(*data);
  nlohmann::json::sax_parse(text, &builder);
  if (const std::uint32_t member = builder.given_twice(); member != kNone) {
    JsonNode(data.get(), member).refuse("each key once", "it twice");
  }
  return JsonDocument(std::move(data));
}

JsonNode JsonDocument::root() const { return JsonNode(data_.get(), 0); }

// --- JsonNode ---

bool JsonNode::is_null() const { return data_->values[index_].type == Type::kNull; }
bool JsonNode::is_string() const { return data_->values[index_].type == Type::kString; }
bool JsonNode::is_array() const { return data_->values[index_].type == Type::kArray; }

bool JsonNode::boolean() const {
  const Value& value = data_->values[index_];
  if (value.type != Type::kBoolean) refuse("true or false");
  return value.integer != 0;
}

std::int64_t JsonNode::integer() const {
  const Value& value = data_->values[index_];
  if (value.type != Type::kInteger) refuse("an integer");
  return value.integer;
}

double JsonNode::number() const {
  const Value& value = data_->values[index_];
  if (value.type == Type::kInteger) return static_cast<double>(value.integer);
  if (value.type != Type::kFloat) refuse("a number");
  return std::bit_cast<double>(value.integer);
}

std::string_view JsonNode::string() const {
  const Value& value = data_->values[index_];
  if (value.type != Type::kString) refuse("a string");
  return data_->text(value.text);
}

std::optional<JsonNode> JsonNode::find(std::string_view key) const {
  const Value& value = data_->values[index_];
  if (value.type != Type::kObject) refuse("an object");
  const std::span<const std::uint32_t> members =
      std::span(data_->by_key).subspan(value.text.offset, value.n_children);
  const auto key_of = [&](std::uint32_t member) { return data_->text(data_->values[member].key); };
  const auto found = std::ranges::lower_bound(members, key, {}, key_of);
  if (found == members.end() || key_of(*found) != key) return std::nullopt;
  const JsonNode member(data_, *found);
  return member.is_null() ? std::nullopt : std::optional(member);
}

JsonNode JsonNode::at(std::string_view key) const {
  const std::optional<JsonNode> member = find(key);
  if (!member) refuse(fmt::format("a field '{}'", key), "none");
  return *member;
}

bool JsonNode::boolean_or(std::string_view key, bool fallback) const {
  const std::optional<JsonNode> member = find(key);
  return member ? member->boolean() : fallback;
}

JsonNode::Range JsonNode::elements() const {
  const Value& value = data_->values[index_];
  if (value.type != Type::kArray) refuse("an array");
  return {Iterator(data_, value.first_child), Iterator(data_, kNone)};
}

JsonNode::Range JsonNode::members() const {
  const Value& value = data_->values[index_];
  if (value.type != Type::kObject) refuse("an object");
  return {Iterator(data_, value.first_child), Iterator(data_, kNone)};
}

std::size_t JsonNode::size() const { return data_->values[index_].n_children; }

std::string_view JsonNode::key() const { return data_->text(data_->values[index_].key); }

JsonNode::Iterator& JsonNode::Iterator::operator++() {
  index_ = data_->values[index_].next;
  return *this;
}

std::string JsonNode::where() const {
  std::vector<std::uint32_t> way;
  for (std::uint32_t at = index_; at != kNone; at = data_->values[at].parent) way.push_back(at);
  std::string text;
  for (std::size_t i = way.size() - 1; i-- > 0;) {
    const Value& value = data_->values[way[i]];
    if (value.is_member) {
      text += fmt::format("{}{}", text.empty() ? "" : ".", printable(data_->text(value.key), 40));
    } else {
      std::size_t position = 0;
      std::uint32_t sibling = data_->values[value.parent].first_child;
      for (; sibling != way[i]; sibling = data_->values[sibling].next) ++position;
      text += fmt::format("[{}]", position);
    }
  }
  return text.empty() ? data_->file : fmt::format("{}: {}", data_->file, text);
}

std::string JsonNode::describe() const {
  const Value& value = data_->values[index_];
  switch (value.type) {
    case Type::kBoolean:
      return value.integer != 0 ? "true" : "false";
    case Type::kInteger:
      return fmt::format("{}", value.integer);
    case Type::kString:
      return fmt::format("'{}'", printable(data_->text(value.text), 60));
    default:
      return name_of(value.type);
  }
}

void JsonNode::refuse(std::string_view expected) const { refuse(expected, describe()); }

void JsonNode::refuse(std::string_view expected, std::string_view found) const {
  throw Error("{}: expected {}, found {}", where(), expected, found);
}

}  // namespace stagecraft
