#include "base/json.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace stagecraft {
namespace {

constexpr std::size_t kMaxDepth = 64;

// Where a parser gave up, in words: config.json is a file that people edit. `byte` counts from 1.
std::string place_of(std::string_view text, std::size_t byte) {
  if (byte > text.size()) return "it ends in the middle";
  const std::string_view before = text.substr(0, byte == 0 ? 0 : byte - 1);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("line {}, column {}", 1 + std::count(before.begin(), before.end(), '\n'),
                     before.size() - line_start + 1);
}

// Builds the value from the events of nlohmann's parser. (Its own callback for this looks at all
// members of the object around at the end of every value: 80,000 tensors took it 149 s.)
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& text) override { return add(std::move(text)); }
  bool binary(binary_t&) override { return false; }  // does not occur in JSON text

  bool key(string_t& name) override {
    auto [member, is_new] =
        open_.back()->get_ref<Json::object_t&>().try_emplace(std::move(name), nullptr);
    if (!is_new) throw Error("{}: '{}' is given twice", where_, printable(name));
    member_ = &member->second;
    return true;
  }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t byte, const std::string& token,
                   const Json::exception& problem) override {
    constexpr int kNumberOverflow = 406;
    if (problem.id == kNumberOverflow) {
      throw Error("{}: not valid JSON: number out of range '{}'", where_, printable(token));
    }
    throw Error("{}: not valid JSON: {}", where_, place_of(text_, byte));
  }

 private:
  bool add(Json value) {
    place(std::move(value));
    return true;
  }

  // Where it belongs: the member whose key came last, behind the last element, or the root.
  Json& place(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    if (open_.back()->is_object()) return *member_ = std::move(value);
    auto& elements = open_.back()->get_ref<Json::array_t&>();
    elements.push_back(std::move(value));
    return elements.back();
  }

  bool open(Json empty) {
    if (open_.size() >= kMaxDepth) {
      throw Error("{}: nested deeper than {} levels", where_, kMaxDepth);
    }
    open_.push_back(&place(std::move(empty)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::string& where_;
  Json root_;
  std::vector<Json*> open_;  // each in the one before: none of them moves while the next is open
  Json* member_ = nullptr;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& where) {
  if (text.empty()) throw Error("{}: expected JSON, found nothing", where);
  // The parser takes a zero byte for the end and would not look at what follows.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    throw Error("{}: not valid JSON: a zero byte at {}", where, place_of(text, zero + 1));
  }
  Builder builder(text, where);
  Json::sax_parse(text, &builder);
  return builder.take();
}

Json parse_json_object(std::string_view text, const std::string& where) {
  Json json = parse_json(text, where);
  if (json.is_object()) return json;
  throw Error("{}: expected an object, found {}", where, describe_json(json));
}

std::string describe_json(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  return printable(value.dump(-1, ' ', true, Json::error_handler_t::replace), 60);
}

const Json* find_member(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::size_t json_size(const Json& value, const std::string& where, std::string_view key,
                      std::size_t min, std::size_t max) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number >= min && number <= max) return static_cast<std::size_t>(number);
  }
  const std::string range =
      max == SIZE_MAX ? fmt::format("of at least {}", min) : fmt::format("from {} to {}", min, max);
  throw Error("{}: '{}': expected a whole number {}, found {}", where, printable(key), range,
              describe_json(value));
}

double json_number(const Json& value, const std::string& where, std::string_view key, double min,
                   double max) {
  if (value.is_number()) {
    const auto number = value.get<double>();
    if (number >= min && number <= max) return number;
  }
  throw Error("{}: '{}': expected a number from {} to {}, found {}", where, printable(key), min,
              max, describe_json(value));
}

bool json_bool(const Json& value, const std::string& where, std::string_view key) {
  if (value.is_boolean()) return value.get<bool>();
  throw Error("{}: '{}': expected true or false, found {}", where, printable(key),
              describe_json(value));
}

const std::string& json_string(const Json& value, const std::string& where, std::string_view key) {
  if (value.is_string()) return value.get_ref<const std::string&>();
  throw Error("{}: '{}': expected a string, found {}", where, printable(key), describe_json(value));
}

}  // namespace stagecraft
