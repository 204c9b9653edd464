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

std::size_t ConfigFields::size_or(std::string_view key, std::size_t fallback, std::size_t min,
                                  std::size_t max) const {
  return has(key) ? size(key, min, max) : fallback;
}

double ConfigFields::number(std::string_view key, double min, double max) const {
  return json_number(at(key), where_, key, min, max);
}

double ConfigFields::number_or(std::string_view key, double fallback, double min,
                               double max) const {
  return has(key) ? number(key, min, max) : fallback;
}

bool ConfigFields::flag_or(std::string_view key, bool fallback) const {
  if (is_null(key)) return false;
  return has(key) ? json_bool(at(key), where_, key) : fallback;
}

std::string ConfigFields::text_or(std::string_view key, std::string_view fallback) const {
  return has(key) ? json_string(at(key), where_, key) : std::string(fallback);
}

std::optional<ConfigFields> ConfigFields::object_of(std::string_view key) const {
  const std::optional<JsonNode> value = find(key);
  if (!value) return std::nullopt;
  if (value->is_object()) return ConfigFields(*value, fmt::format("{}: {}", where_, key));
  throw Error("{}: '{}': expected an object, found {}", where_, key, value->describe());
}

}  // namespace stagecraft
