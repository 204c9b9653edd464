#include "base/config_fields.h"

namespace stagecraft {

JsonNode ConfigFields::at(std::string_view key) const {
  const std::optional<JsonNode> value = find(key);
  if (!value) throw Error("{}: '{}' is missing", where_, key);
  return *value;
}

std::size_t ConfigFields::size(std::string_view key, std::size_t min, std::size_t max) const {
  return json_size(at(key), where_, key, min, max);
}

std::size_t ConfigFields::size_or(std::string_view key, std::size_t default_value, std::size_t min,
                                  std::size_t max) const {
  return has(key) ? size(key, min, max) : default_value;
}

double ConfigFields::number(std::string_view key, double min, double max) const {
  return json_number(at(key), where_, key, min, max);
}

double ConfigFields::number_or(std::string_view key, double default_value, double min,
                               double max) const {
  return has(key) ? number(key, min, max) : default_value;
}

bool ConfigFields::flag_or(std::string_view key, bool default_value) const {
  if (is_null(key)) return false;
  return has(key) ? json_bool(at(key), where_, key) : default_value;
}

std::string ConfigFields::text_or(std::string_view key, std::string_view default_value) const {
  return has(key) ? json_string(at(key), where_, key) : std::string(default_value);
}

std::optional<ConfigFields> ConfigFields::object_of(std::string_view key) const {
  const std::optional<JsonNode> value = find(key);
  if (!value) return std::nullopt;
  if (value->is_object()) return ConfigFields(*value, fmt::format("{}: {}", where_, key));
  throw Error("{}: '{}': expected an object, found {}", where_, key, value->describe());
}

}  // namespace stagecraft
