#pragma once

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

// The members of one JSON object, with defaults and one kind of error.
class ConfigFields {
 public:
  ConfigFields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  const Json* find(std::string_view key) const { return find_member(object_, key); }
  bool has(std::string_view key) const { return find(key) != nullptr; }
  bool is_null(std::string_view key) const { return !has(key) && object_.contains(key); }

  std::size_t size(std::string_view key, std::size_t min = 1,
                   std::size_t max = kMaxDimension) const {
    const Json* value = find(key);
    if (value == nullptr) throw Error("{}: '{}' is missing", where_, key);
    return json_size(*value, where_, key, min, max);
  }
  std::size_t size_or(std::string_view key, std::size_t fallback, std::size_t min = 1) const {
    return has(key) ? size(key, min) : fallback;
  }
  double number(std::string_view key, double min, double max) const {
    const Json* value = find(key);
    if (value == nullptr) throw Error("{}: '{}' is missing", where_, key);
    return json_number(*value, where_, key, min, max);
  }
  double number_or(std::string_view key, double fallback, double min, double max) const {
    return has(key) ? number(key, min, max) : fallback;
  }
  bool flag_or(std::string_view key, bool fallback) const {
    const Json* value = find(key);
    return value == nullptr ? fallback : json_bool(*value, where_, key);
  }
  std::string text_or(std::string_view key, std::string_view fallback) const {
    const Json* value = find(key);
    return value == nullptr ? std::string(fallback) : json_string(*value, where_, key);
  }

  const Json& object() const { return object_; }
  const std::string& where() const { return where_; }

 private:
  const Json& object_;
  std::string where_;
};

}  // namespace stagecraft
