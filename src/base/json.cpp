#include "base/json.h"

#include <cmath>
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
    if (depth > kMaxDepth) throw Error("{}: nested deeper than {} levels", where_, kMaxDepth);
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

}  // namespace

Json parse_json(std::string_view text, const std::string& where) {
  try {
    return Json::parse(text, StrictObjects(where));
  } catch (const Json::parse_error& error) {
    throw Error("{}: not valid JSON at byte {}", where, error.byte);
  } catch (const Json::exception& error) {
    throw Error("{}: not valid JSON: {}", where, printable(error.what(), 120));
  }
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
  throw Error("{}: '{}': expected a whole number from {} to {}, found {}", where, printable(key),
              min, max, describe_json(value));
}

double json_number(const Json& value, const std::string& where, std::string_view key) {
  if (value.is_number() && std::isfinite(value.get<double>())) return value.get<double>();
  throw Error("{}: '{}': expected a number, found {}", where, printable(key), describe_json(value));
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
