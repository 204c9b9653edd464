#include "base/json.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace stagecraft {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

enum class Type : std::uint8_t {
  kNull,
  kBoolean,
  kInteger,
  kUnsigned,  // a whole number too large for kInteger
  kFloat,
  kString,
  kArray,
  kObject
};

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
  std::uint32_t first_child = kNone;  // of an array or object
  Text key = {};
  // For a string: its text. For an array: `length` is the number of elements. For an object: the
  // range of `by_key` that has its members. For a boolean or a number: its bits.
  Text content = {};

  template <class Bits>
  Bits as() const {
    return std::bit_cast<Bits>(content);
  }
  std::uint32_t n_children() const {
    return type == Type::kArray || type == Type::kObject ? content.length : 0;
  }
};

// Bits: a type of eight bytes.
template <class Bits>
Text content_of(Bits bits) {
  return std::bit_cast<Text>(bits);
}

static_assert(sizeof(Value) == 32);  // a vocabulary has 100,000 of them

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

// The path of a value: "model.vocab", "[3].name"; empty for the root.
std::string way_to(const JsonData& data, std::uint32_t index) {
  std::vector<std::uint32_t> way;
  for (std::uint32_t at = index; at != kNone; at = data.values[at].parent) way.push_back(at);
  std::string text;
  for (std::size_t i = way.size() - 1; i-- > 0;) {
    const Value& value = data.values[way[i]];
    if (value.is_member) {
      text += fmt::format("{}{}", text.empty() ? "" : ".", printable(data.text(value.key), 40));
    } else {
      std::size_t position = 0;
      std::uint32_t sibling = data.values[value.parent].first_child;
      for (; sibling != way[i]; sibling = data.values[sibling].next) ++position;
      text += fmt::format("[{}]", position);
    }
  }
  return text;
}

// The place where the parser stopped, in words, because people edit config.json. `byte` counts from
// 1.
std::string place_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte == 0 ? 0 : byte - 1);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("line {}, column {}", 1 + std::count(before.begin(), before.end(), '\n'),
                     before.size() - line_start + 1);
}

// "parse error at line 1, column 9: syntax error while parsing object key - unexpected ',';
// expected string literal" -> ": unexpected ','; expected string literal"
std::string reason_of(std::string_view problem) {
  const std::size_t dash = problem.find(" - ");
  if (dash == problem.npos) return "";
  const std::string_view reason = problem.substr(dash + 3);
  return fmt::format(": {}", printable(reason.substr(0, reason.find("; last read"))));
}

// Receives the events of nlohmann's parser, which does not recurse, and appends values.
class Builder : public nlohmann::json::json_sax_t {
 public:
  explicit Builder(JsonData& data) : data_(data) {}

  void read(std::string_view text) {
    text_ = text;
    nlohmann::json::sax_parse(text, this);
  }
  bool add_text(std::string_view text) {
    return append({.type = Type::kString, .content = store(text)});
  }
  bool add_key(std::string_view text) {
    key_ = store(text);
    return true;
  }
  void end() {
    if (data_.values[open_.back().index].type == Type::kObject) sort_members(open_.back().index);
    open_.pop_back();
  }

  bool null() override { return append({}); }
  bool boolean(bool value) override {
    return append({.type = Type::kBoolean, .content = content_of<std::int64_t>(value)});
  }
  bool number_integer(number_integer_t value) override {
    return append({.type = Type::kInteger, .content = content_of(value)});
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (std::in_range<std::int64_t>(value)) {
      return append({.type = Type::kInteger, .content = content_of(value)});
    }
    return append({.type = Type::kUnsigned, .content = content_of(value)});
  }
  bool number_float(number_float_t value, const string_t&) override {
    return append({.type = Type::kFloat, .content = content_of(value)});
  }
  bool string(string_t& text) override { return add_text(text); }
  bool binary(binary_t&) override { return false; }  // does not occur in JSON text
  bool key(string_t& text) override { return add_key(text); }
  bool start_object(std::size_t) override { return open(Type::kObject); }
  bool start_array(std::size_t) override { return open(Type::kArray); }
  bool end_object() override {
    end();
    return true;
  }
  bool end_array() override { return end_object(); }
  bool parse_error(std::size_t byte, const std::string& token,
                   const nlohmann::detail::exception& problem) override {
    constexpr int kNumberOverflow = 406;
    if (problem.id == kNumberOverflow) {
      throw Error("{}: not valid JSON: number out of range '{}'", data_.file, printable(token));
    }
    if (byte > text_.size()) throw Error("{}: not valid JSON: it ends too early", data_.file);
    throw Error("{}: not valid JSON: {}{}", data_.file, place_of(text_, byte),
                reason_of(problem.what()));
  }

 private:
  struct Open {
    std::uint32_t index;       // of the array or object
    std::uint32_t last_child;  // so far
  };

  bool append(Value value) {
    if (data_.values.size() >= Json::kMaxValues) {
      throw Error("{}: expected at most {} values, found more", data_.file, Json::kMaxValues);
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
      (parent.content.length == 0 ? parent.first_child : data_.values[open.last_child].next) =
          index;
      ++parent.content.length;
      open.last_child = index;
    }
    data_.values.push_back(value);
    return true;
  }

  bool open(Type type) {
    if (open_.size() >= Json::kMaxDepth) {
      throw Error("{}: nested deeper than {} levels", data_.file, Json::kMaxDepth);
    }
    append({.type = type});
    open_.push_back({static_cast<std::uint32_t>(data_.values.size() - 1), kNone});
    return true;
  }

  struct Member {
    std::uint64_t beginning;  // of the key: most keys differ here already
    std::uint32_t index;

    auto operator<=>(const Member&) const = default;
  };

  // Writes the members to by_key in the order of their keys, for binary search. Throws Error if a
  // key occurs twice.
  void sort_members(std::uint32_t object) {
    members_.clear();
    for (std::uint32_t at = data_.values[object].first_child; at != kNone;
         at = data_.values[at].next) {
      members_.push_back({beginning_of(data_.text(data_.values[at].key)), at});
    }
    sort_by_beginning();
    const auto alike = [](const Member& one, const Member& other) {
      return one.beginning == other.beginning;
    };
    auto run = std::ranges::adjacent_find(members_, alike);
    while (run != members_.end()) {
      const auto end = std::find_if(run, members_.end(),
                                    [&](const Member& other) { return !alike(*run, other); });
      sort_by_text({run, end});
      run = std::adjacent_find(end, members_.end(), alike);
    }
    data_.values[object].content.offset = static_cast<std::uint32_t>(data_.by_key.size());
    for (const Member& member : members_) data_.by_key.push_back(member.index);
  }

  // A radix sort, from the last byte to the first. For the 150,000 keys of a vocabulary it takes a
  // third of std::sort's time.
  void sort_by_beginning() {
    constexpr std::size_t kMany = 256;
    if (members_.size() < kMany) {
      std::ranges::sort(members_);
      return;
    }
    other_.resize(members_.size());
    for (int shift = 0; shift < 64; shift += 8) {
      const auto byte = [&](const Member& one) { return one.beginning >> shift & 0xff; };
      std::array<std::size_t, 257> place{};  // where the next member with this byte goes
      for (const Member& one : members_) ++place[byte(one) + 1];
      std::partial_sum(place.begin(), place.end(), place.begin());
      for (const Member& one : members_) other_[place[byte(one)]++] = one;
      members_.swap(other_);
    }
  }

  void sort_by_text(std::span<Member> run) {
    const auto key = [&](const Member& one) { return data_.text(data_.values[one.index].key); };
    std::ranges::sort(run, [&](const Member& one, const Member& other) {
      const int order = key(one).compare(key(other));
      return order != 0 ? order < 0 : one.index < other.index;
    });
    const auto twice = std::ranges::adjacent_find(run, {}, key);
    if (twice == run.end()) return;
    const std::uint32_t second = std::next(twice)->index;
    throw Error("{}: '{}' is given twice", data_.file, way_to(data_, second));
  }

  // The first eight bytes as a big-endian number: numbers have the same order as the texts.
  static std::uint64_t beginning_of(std::string_view key) {
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < sizeof number; ++i) {
      number = number << 8 | (i < key.size() ? static_cast<unsigned char>(key[i]) : 0u);
    }
    return number;
  }

  Text store(std::string_view text) {
    if (data_.arena.size() + text.size() > Json::kMaxBytes) {
      throw Error("{}: expected at most {} bytes of text, found more", data_.file, Json::kMaxBytes);
    }
    const Text piece{static_cast<std::uint32_t>(data_.arena.size()),
                     static_cast<std::uint32_t>(text.size())};
    data_.arena += text;
    return piece;
  }

  std::string_view text_;
  JsonData& data_;
  std::vector<Open> open_;
  std::vector<Member> members_;  // of the object that is ending
  std::vector<Member> other_;    // scratch
  Text key_;
};

// As JSON writes it: 2.0, not 2.
std::string float_text(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

// --- Json ---

Json::Json(std::string_view text, std::string where) : data_(std::make_unique<JsonData>()) {
  data_->file = std::move(where);
  if (text.empty()) throw Error("{}: expected JSON, found nothing", data_->file);
  if (text.size() > kMaxBytes) {
    throw Error("{}: expected at most {} bytes, found {}", data_->file, kMaxBytes, text.size());
  }
  // The parser treats a zero byte as the end, and would not read what follows.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    throw Error("{}: not valid JSON: a zero byte at {}", data_->file, place_of(text, zero + 1));
  }
  data_->arena.reserve(text.size() / 2);
  Builder(*data_).read(text);
}

Json::Json(std::unique_ptr<JsonData> data) : data_(std::move(data)) {}

Json::Json(Json&&) noexcept = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

JsonNode Json::root() const { return JsonNode(data_.get(), 0); }

Json parse_json_object(std::string_view text, const std::string& where) {
  Json json(text, where);
  if (!json.root().is_object()) json.root().refuse("an object");
  return json;
}

// --- JsonBuilder ---

struct JsonBuilder::Parts {
  std::unique_ptr<JsonData> data = std::make_unique<JsonData>();
  Builder builder{*data};
};

JsonBuilder::JsonBuilder(std::string where) : parts_(std::make_unique<Parts>()) {
  parts_->data->file = std::move(where);
}
JsonBuilder::~JsonBuilder() = default;

JsonBuilder& JsonBuilder::key(std::string_view key) {
  parts_->builder.add_key(key);
  return *this;
}

void JsonBuilder::text(std::string_view value) { parts_->builder.add_text(value); }
void JsonBuilder::integer(std::int64_t value) { parts_->builder.number_integer(value); }
void JsonBuilder::boolean(bool value) { parts_->builder.boolean(value); }
void JsonBuilder::null() { parts_->builder.null(); }
void JsonBuilder::json(std::string_view text) { parts_->builder.read(text); }
void JsonBuilder::begin_object() { parts_->builder.start_object(0); }
void JsonBuilder::begin_array() { parts_->builder.start_array(0); }
void JsonBuilder::end() { parts_->builder.end(); }

Json JsonBuilder::take() { return Json(std::move(parts_->data)); }

// --- JsonNode ---

bool JsonNode::is_null() const { return data_->values[index_].type == Type::kNull; }
bool JsonNode::is_boolean() const { return data_->values[index_].type == Type::kBoolean; }
bool JsonNode::is_integer() const { return data_->values[index_].type == Type::kInteger; }
bool JsonNode::is_number() const {
  const Type type = data_->values[index_].type;
  return type == Type::kInteger || type == Type::kUnsigned || type == Type::kFloat;
}
bool JsonNode::is_string() const { return data_->values[index_].type == Type::kString; }
bool JsonNode::is_array() const { return data_->values[index_].type == Type::kArray; }
bool JsonNode::is_object() const { return data_->values[index_].type == Type::kObject; }

bool JsonNode::boolean() const {
  const Value& value = data_->values[index_];
  if (value.type != Type::kBoolean) refuse("true or false");
  return value.as<std::int64_t>() != 0;
}

std::int64_t JsonNode::integer() const {
  const Value& value = data_->values[index_];
  if (value.type != Type::kInteger) refuse("an integer");
  return value.as<std::int64_t>();
}

bool JsonNode::is_whole() const {
  const Value& value = data_->values[index_];
  return value.type == Type::kUnsigned ||
         (value.type == Type::kInteger && value.as<std::int64_t>() >= 0);
}

std::uint64_t JsonNode::whole() const {
  if (!is_whole()) refuse("a whole number");
  return data_->values[index_].as<std::uint64_t>();
}

double JsonNode::number() const {
  const Value& value = data_->values[index_];
  if (value.type == Type::kInteger) return static_cast<double>(value.as<std::int64_t>());
  if (value.type == Type::kUnsigned) return static_cast<double>(whole());
  if (value.type != Type::kFloat) refuse("a number");
  return value.as<double>();
}

std::string_view JsonNode::string() const {
  const Value& value = data_->values[index_];
  if (value.type != Type::kString) refuse("a string");
  return data_->text(value.content);
}

std::uint32_t JsonNode::index_of(std::string_view key) const {
  const Value& value = data_->values[index_];
  if (value.type != Type::kObject) refuse("an object");
  const std::span<const std::uint32_t> members =
      std::span(data_->by_key).subspan(value.content.offset, value.content.length);
  const auto key_of = [&](std::uint32_t member) { return data_->text(data_->values[member].key); };
  const auto found = std::ranges::lower_bound(members, key, {}, key_of);
  return found == members.end() || key_of(*found) != key ? kNone : *found;
}

bool JsonNode::contains(std::string_view key) const { return index_of(key) != kNone; }

std::optional<JsonNode> JsonNode::member(std::string_view key) const {
  const std::uint32_t index = index_of(key);
  return index == kNone ? std::nullopt : std::optional(JsonNode(data_, index));
}

std::optional<JsonNode> JsonNode::find(std::string_view key) const {
  const std::optional<JsonNode> found = member(key);
  return found && found->is_null() ? std::nullopt : found;
}

JsonNode JsonNode::at(std::string_view key) const {
  const std::optional<JsonNode> member = find(key);
  if (!member) refuse(fmt::format("a field '{}'", key), "none");
  return *member;
}

bool JsonNode::boolean_or(std::string_view key, bool default_value) const {
  const std::optional<JsonNode> member = find(key);
  return member ? member->boolean() : default_value;
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

std::size_t JsonNode::size() const { return data_->values[index_].n_children(); }

std::string_view JsonNode::key() const { return data_->text(data_->values[index_].key); }

JsonNode::Iterator& JsonNode::Iterator::operator++() {
  index_ = data_->values[index_].next;
  return *this;
}

std::string JsonNode::where() const {
  const std::string way = way_to(*data_, index_);
  return way.empty() ? data_->file : fmt::format("{}: {}", data_->file, way);
}

std::string JsonNode::describe() const {
  const Value& value = data_->values[index_];
  switch (value.type) {
    case Type::kNull:
      return "null";
    case Type::kBoolean:
      return value.as<std::int64_t>() != 0 ? "true" : "false";
    case Type::kInteger:
      return fmt::format("{}", value.as<std::int64_t>());
    case Type::kUnsigned:
      return fmt::format("{}", value.as<std::uint64_t>());
    case Type::kFloat:
      return float_text(value.as<double>());
    case Type::kString:
      return fmt::format("\"{}\"", printable(data_->text(value.content), 60));
    case Type::kArray:
      return fmt::format("an array of {}", value.n_children());
    case Type::kObject:
      return "an object";
  }
  return "?";
}

void JsonNode::refuse(std::string_view expected) const { refuse(expected, describe()); }

void JsonNode::refuse(std::string_view expected, std::string_view found) const {
  throw Error("{}: expected {}, found {}", where(), expected, found);
}

bool operator==(JsonNode a, JsonNode b) {
  if (a.is_integer() && b.is_integer()) return a.integer() == b.integer();
  if (a.is_whole() && b.is_whole()) return a.whole() == b.whole();
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  const Value &one = a.data_->values[a.index_], &other = b.data_->values[b.index_];
  if (one.type != other.type || one.n_children() != other.n_children()) return false;
  if (one.type == Type::kBoolean) return one.as<std::int64_t>() == other.as<std::int64_t>();
  if (one.type == Type::kString) return a.string() == b.string();
  if (one.type == Type::kObject) {
    for (const JsonNode member : a.members()) {
      const std::uint32_t same = b.index_of(member.key());
      if (same == kNone || !(member == JsonNode(b.data_, same))) return false;
    }
  } else if (one.type == Type::kArray) {
    auto at = b.elements().begin();
    for (const JsonNode element : a.elements()) {
      if (!(element == *at)) return false;
      ++at;
    }
  }
  return true;
}

// --- values with a range ---

std::size_t json_size(JsonNode value, const std::string& where, std::string_view key,
                      std::size_t min, std::size_t max) {
  if (value.is_whole() && value.whole() >= min && value.whole() <= max) return value.whole();
  const std::string range =
      max == SIZE_MAX ? fmt::format("of at least {}", min) : fmt::format("from {} to {}", min, max);
  throw Error("{}: '{}': expected a whole number {}, found {}", where, printable(key), range,
              value.describe());
}

double json_number(JsonNode value, const std::string& where, std::string_view key, double min,
                   double max) {
  if (value.is_number() && value.number() >= min && value.number() <= max) return value.number();
  throw Error("{}: '{}': expected a number from {} to {}, found {}", where, printable(key), min,
              max, value.describe());
}

bool json_bool(JsonNode value, const std::string& where, std::string_view key) {
  if (value.is_boolean()) return value.boolean();
  throw Error("{}: '{}': expected true or false, found {}", where, printable(key),
              value.describe());
}

std::string json_string(JsonNode value, const std::string& where, std::string_view key) {
  if (value.is_string()) return std::string(value.string());
  throw Error("{}: '{}': expected a string, found {}", where, printable(key), value.describe());
}

}  // namespace stagecraft
