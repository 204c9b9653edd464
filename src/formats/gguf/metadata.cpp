#include "formats/gguf/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/utf8.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMaxKeyBytes = 65'535;

}  // namespace

GgufMetadata::GgufMetadata(ByteReader& reader, std::uint64_t count) : file_(reader.file()) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string_view key = reader.text(fmt::format("metadata key {}", i));
    if (key.empty() || key.size() > kMaxKeyBytes ||
        utf8_error_offset(key) != std::string_view::npos) {
      throw Error("{}: metadata key {}: expected UTF-8 of 1 to {} bytes, found {} ('{}')", file_, i,
                  kMaxKeyBytes, key.size(), printable(key, 40));
    }
    const std::string what = fmt::format("'{}'", printable(key));
    const GgufValue value = GgufValue::read(reader, what);
    if (!values_.emplace(key, value).second) throw Error("{}: {} is given twice", file_, what);
  }
}

std::vector<std::string_view> GgufMetadata::keys() const {
  std::vector<std::string_view> keys;
  keys.reserve(values_.size());
  for (const auto& [key, value] : values_) keys.push_back(key);
  return keys;
}

const GgufValue& GgufMetadata::at(std::string_view key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) throw Error("{}: '{}' is missing", file_, key);
  return found->second;
}

void GgufMetadata::refuse(std::string_view key, std::string_view expected) const {
  throw Error("{}: '{}': expected {}, found {}", file_, printable(key), expected,
              at(key).describe());
}

std::size_t GgufMetadata::size(std::string_view key, std::size_t min, std::size_t max) const {
  const GgufValue& value = at(key);
  if (!value.is_array() && value.is_integer()) {
    const std::int64_t number = value.integer();
    if (number >= 0 && static_cast<std::uint64_t>(number) >= min &&
        static_cast<std::uint64_t>(number) <= max) {
      return static_cast<std::size_t>(number);
    }
  }
  refuse(key, fmt::format("a whole number from {} to {}", min, max));
}

std::size_t GgufMetadata::size_of_layers(std::string_view key, std::size_t max) const {
  if (!is_array(key)) return size(key, 1, max);
  const std::string layers = fmt::format("{}.block_count", key.substr(0, key.find('.')));
  const std::size_t n_layers = size(layers, 1, SIZE_MAX);
  const std::vector<std::int64_t> sizes = integers(key);
  const bool fits = sizes.size() == n_layers && sizes.front() >= 1 &&
                    static_cast<std::uint64_t>(sizes.front()) <= max &&
                    std::ranges::count(sizes, sizes.front()) == std::ssize(sizes);
  if (!fits) refuse(key, fmt::format("the same number for each layer, {} in all", n_layers));
  return static_cast<std::size_t>(sizes.front());
}

std::optional<std::size_t> GgufMetadata::find_size(std::string_view key, std::size_t min,
                                                   std::size_t max) const {
  return has(key) ? std::optional(size(key, min, max)) : std::nullopt;
}

std::optional<std::size_t> GgufMetadata::find_token_id(std::string_view key,
                                                       std::size_t n_tokens) const {
  if (!has(key) || size(key, 0, SIZE_MAX) == UINT32_MAX) return std::nullopt;
  return size(key, 0, n_tokens - 1);
}

double GgufMetadata::number(std::string_view key) const {
  const GgufValue& value = at(key);
  if (!value.is_array() && value.is_number()) {
    const double number = value.number();
    if (std::isfinite(number)) return number;
  }
  refuse(key, "a number");
}

double GgufMetadata::number(std::string_view key, double min, double max) const {
  const double found = number(key);
  if (found >= min && found <= max) return found;
  refuse(key, fmt::format("a number from {} to {}", min, max));
}

bool GgufMetadata::flag_or(std::string_view key, bool default_value) const {
  if (!has(key)) return default_value;
  const GgufValue& value = at(key);
  if (value.is_array() || !value.is_flag()) refuse(key, "true or false");
  return value.flag();
}

std::string_view GgufMetadata::text(std::string_view key) const {
  const GgufValue& value = at(key);
  if (value.is_array() || !value.is_text()) refuse(key, "a text");
  return value.text();
}

std::string_view GgufMetadata::text_or(std::string_view key, std::string_view default_value) const {
  return has(key) ? text(key) : default_value;
}

const GgufValue& GgufMetadata::array(std::string_view key, std::string_view what) const {
  const GgufValue& value = at(key);
  if (!value.is_array()) refuse(key, what);
  return value;
}

std::vector<std::string_view> GgufMetadata::texts(std::string_view key) const {
  constexpr std::string_view kWhat = "an array of texts";
  const GgufValue& value = array(key, kWhat);
  if (!value.is_text()) refuse(key, kWhat);
  std::vector<std::string_view> texts;
  texts.reserve(value.count());  // bounded: each text takes at least 8 bytes of the file
  for (std::size_t byte = 0; byte < value.n_bytes();) {
    texts.push_back(value.text_at(byte));
    byte += GgufValue::text_size(texts.back());
  }
  return texts;
}

template <class T>
std::vector<T> GgufMetadata::elements(std::string_view key, std::string_view what,
                                      bool (GgufValue::*is)() const,
                                      T (GgufValue::*element)(std::size_t) const) const {
  const GgufValue& value = array(key, what);
  if (!(value.*is)()) refuse(key, what);
  std::vector<T> all(value.count());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = (value.*element)(i);
  return all;
}

std::vector<std::int64_t> GgufMetadata::integers(std::string_view key) const {
  return elements(key, "an array of whole numbers", &GgufValue::is_integer, &GgufValue::integer);
}

std::vector<double> GgufMetadata::numbers(std::string_view key) const {
  return elements(key, "an array of numbers", &GgufValue::is_number, &GgufValue::number);
}

std::vector<bool> GgufMetadata::flags(std::string_view key) const {
  return elements(key, "an array of true and false", &GgufValue::is_flag, &GgufValue::flag);
}

bool GgufMetadata::is_off(std::string_view key) const {
  const GgufValue& value = at(key);
  if (value.is_array()) return false;
  return value.is_flag() ? !value.flag() : value.is_number() && value.number() == 0.0;
}

bool GgufMetadata::is_neutral(std::string_view key) const {
  const GgufValue& value = at(key);
  if (value.is_array()) return value.count() == 0;
  if (value.is_text()) return value.text().empty() || value.text() == "none";
  return is_off(key);
}

}  // namespace stagecraft
