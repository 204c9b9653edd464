#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace stagecraft {

// No dimension of a model may be larger: far above real models, and two of them multiplied stay far
// below what a 64-bit size can hold.
inline constexpr std::size_t kMaxDimension = 1u << 24;
inline constexpr std::size_t kMaxLayers = 4096;
// "rms_norm_eps": f32 holds it and its square.
inline constexpr double kMinEps = 1e-30;
inline constexpr double kMaxEps = 1.0;

// The members of one JSON object, with defaults and one kind of error. It looks into a Json, which
// must live longer. A member that is null counts as missing.
class ConfigFields {
 public:
  ConfigFields(const Json& json, std::string where) : ConfigFields(json.root(), std::move(where)) {}
  ConfigFields(JsonNode object, std::string where) : object_(object), where_(std::move(where)) {}

  std::optional<JsonNode> find(std::string_view key) const { return object_.find(key); }
  bool has(std::string_view key) const { return find(key).has_value(); }
  bool is_null(std::string_view key) const { return !has(key) && object_.contains(key); }

  // Each throws Error that names the field if it is missing, of another kind or out of range. Those
  // with a fallback return it if the field is missing.
  std::size_t size(std::string_view key, std::size_t min = 1,
                   std::size_t max = kMaxDimension) const;
  std::size_t size_or(std::string_view key, std::size_t fallback, std::size_t min = 1,
                      std::size_t max = kMaxDimension) const;
  double number(std::string_view key, double min, double max) const;
  double number_or(std::string_view key, double fallback, double min, double max) const;
  bool flag_or(std::string_view key, bool fallback) const;
  std::string text_or(std::string_view key, std::string_view fallback) const;
  // The members of the object `key`; nullopt where it is missing.
  std::optional<ConfigFields> object_of(std::string_view key) const;

  JsonNode object() const { return object_; }
  const std::string& where() const { return where_; }

 private:
  JsonNode at(std::string_view key) const;

  JsonNode object_;
  std::string where_;
};

}  // namespace stagecraft
