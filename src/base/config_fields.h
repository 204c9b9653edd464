#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace stagecraft {

// The largest dimension of a model: far above real models, and the product of two of them is far
// below the largest 64-bit size.
inline constexpr std::size_t kMaxDimension = 1u << 24;

// The members of one JSON object, with defaults and uniform errors. Keeps a reference into a Json,
// which must outlive it. A member that is null counts as missing. But a flag that is null is false,
// as in Python.
class ConfigFields {
 public:
  ConfigFields(const Json& json, std::string where) : ConfigFields(json.root(), std::move(where)) {}
  ConfigFields(JsonNode object, std::string where) : object_(object), where_(std::move(where)) {}

  std::optional<JsonNode> find(std::string_view key) const { return object_.find(key); }
  bool has(std::string_view key) const { return find(key).has_value(); }
  bool is_null(std::string_view key) const { return !has(key) && object_.contains(key); }

  // Each throws Error naming the field if it is missing, of another type or out of range. The
  // functions with a default value return it if the field is missing.
  std::size_t size(std::string_view key, std::size_t min = 1,
                   std::size_t max = kMaxDimension) const;
  std::size_t size_or(std::string_view key, std::size_t default_value, std::size_t min = 1,
                      std::size_t max = kMaxDimension) const;
  double number(std::string_view key, double min, double max) const;
  double number_or(std::string_view key, double default_value, double min, double max) const;
  bool flag_or(std::string_view key, bool default_value) const;
  std::string text_or(std::string_view key, std::string_view default_value) const;
  // The members of the object `key`; nullopt if it is missing.
  std::optional<ConfigFields> object_of(std::string_view key) const;

  JsonNode object() const { return object_; }
  const std::string& where() const { return where_; }

 private:
  JsonNode at(std::string_view key) const;

  JsonNode object_;
  std::string where_;
};

}  // namespace stagecraft
