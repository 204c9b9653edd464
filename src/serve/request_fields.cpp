#include "serve/request_fields.h"

#include <algorithm>
#include <cmath>

namespace stagecraft {

std::string place_of(std::string_view field) { return fmt::format("{}: '{}'", kRequest, field); }

void refuse_field(const std::string& field, std::string_view problem, std::string code) {
  throw ApiError::bad_request(field, fmt::format("{}: {}", place_of(field), problem),
                              std::move(code));
}

void expected(const std::string& field, std::string_view what, std::string_view found,
              std::string code) {
  refuse_field(field, fmt::format("expected {}, found {}", what, found), std::move(code));
}

void expected(const std::string& field, std::string_view what, std::optional<JsonNode> found) {
  expected(field, what, found ? found->describe() : "none");
}

std::string text_of(JsonNode value, const std::string& field) {
  if (!value.is_string()) expected(field, "a string", value);
  return std::string(value.string());
}

std::string_view type_of(JsonNode value) {
  const std::optional<JsonNode> type = value.is_object() ? value.find("type") : std::nullopt;
  return type && type->is_string() ? type->string() : "";
}

std::string RequestFields::path(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

std::optional<JsonNode> RequestFields::find(const char* key) {
  known_.insert(key);
  return object_.find(key);
}

JsonNode RequestFields::needed(const char* key, std::string_view what) {
  const std::optional<JsonNode> value = find(key);
  if (!value) expected(path(key), what, value);
  return *value;
}

std::string RequestFields::text(const char* key) {
  return text_of(needed(key, "a string"), path(key));
}

template <class T, class Read>
T RequestFields::read(const char* key, T default_value, Read convert) {
  const std::optional<JsonNode> value = find(key);
  if (!value) return default_value;
  const std::string field = path(key);
  return reading(field, [&] { return convert(*value, field); });
}

std::size_t RequestFields::size(const char* key, std::size_t min, std::size_t max,
                                std::size_t default_value) {
  return read(key, default_value, [&](JsonNode value, const std::string& field) {
    if (value.is_number() && !value.is_whole()) {  // some languages write 5.0 for 5
      const double number = value.number();
      const auto most = static_cast<double>(std::min(max, std::size_t{1} << 53));
      if (number == std::floor(number) && number >= static_cast<double>(min) && number <= most) {
        return static_cast<std::size_t>(number);
      }
    }
    return json_size(value, kRequest, field, min, max);
  });
}

float RequestFields::number(const char* key, NumberRange range, float default_value) {
  return read(key, default_value, [&](JsonNode value, const std::string& field) {
    return static_cast<float>(json_number(value, kRequest, field, range.min, range.max));
  });
}

bool RequestFields::flag(const char* key, bool default_value) {
  return read(key, default_value, [&](JsonNode value, const std::string& field) {
    return json_bool(value, kRequest, field);
  });
}

void RequestFields::ignore(std::initializer_list<const char*> keys) {
  for (const char* key : keys) known_.insert(key);
}

void RequestFields::only(const char* key, std::string_view neutral) {
  const std::optional<JsonNode> value = find(key);
  if (!value) return;
  const Json values(neutral, key);
  for (const JsonNode one : values.root().elements()) {
    if (one == *value) return;
  }
  refuse_field(path(key), "not supported, found " + value->describe(), "unsupported_parameter");
}

void RequestFields::refuse_others() const {
  for (const JsonNode value : object_.members()) {
    const std::string_view key = value.key();
    if (known_.contains(key) || value.is_null()) continue;
    refuse_field(path(printable(key)), "unknown field", "unknown_parameter");
  }
}

}  // namespace stagecraft
