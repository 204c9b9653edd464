#include "base/json.h"

#include <algorithm>
#include <set>
#include <vector>

namespace stagecraft {
namespace {

constexpr int kMaxDepth = 64;

// Called by the parser at every event: keeps the keys of each object that is open.
class StrictObjects {
 public:
  explicit StrictObjects(const std::string& where) : where_(where) {}

  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    const bool opens =
        event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth >= kMaxDepth) {
      throw Error("{}: nested deeper than {} levels", where_, kMaxDepth);
    }
    if (event == Json::parse_event_t::object_start) open_.emplace_back();
    if (event == Json::parse_event_t::object_end) open_.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!open_.back().insert(key).second) {
        throw Error("{}: '{}' is given twice", where_, printable(key));
      }
    }
    return true;
  }

 private:
  const std::string& where_;
  std::vector<std::set<std::string>> open_;
};

// Where a parser gave up, in words: config.json is a file that people edit. `byte` counts from 1.
std::string place_of(std::string_view text, std::size_t byte) {
  if (byte > text.size()) return "it ends in the middle";
  const std::string_view before = text.substr(0, byte == 0 ? 0 : byte - 1);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("line {}, column {}", 1 + std::count(before.begin(), before.end(), '\n'),
                     before.size() - line_start + 1);
}

}  // namespace

Json parse_json(std::string_view text, const std::string& where) {
  if (text.empty()) throw Error("{}: expected JSON, found nothing", where);
  // The parser takes a zero byte for the end and would not look at what follows.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    throw Error("{}: not valid JSON: a zero byte at {}", where, place_of(text, zero + 1));
  }
  try {
    return Json::parse(text, StrictObjects(where));
  } catch (const Json::parse_error& error) {
    throw Error("{}: not valid JSON: {}", where, place_of(text, error.byte));
  } catch (const Json::out_of_range& error) {
    const std::string_view what = error.what();  // "... number overflow parsing '1e999'"
    const std::size_t quote = std::min(what.find('\''), what.size());
    throw Error("{}: not valid JSON: number out of range {}", where, printable(what.substr(quote)));
  } catch (const Json::exception& error) {
    throw Error("{}: not valid JSON: {}", where, printable(error.what(), 120));
  }
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
