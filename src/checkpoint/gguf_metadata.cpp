#include "checkpoint/gguf_metadata.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/utf8.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMaxKeyBytes = 65'535;
constexpr std::size_t kLengthBytes = 8;

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
    const Value value = read_value(reader, what);
    if (!values_.emplace(key, value).second) throw Error("{}: {} is given twice", file_, what);
  }
}

// The bytes of one value, nullopt for those that say it themselves.
std::optional<std::size_t> GgufMetadata::width(Type type) {
  switch (type) {
    case Type::U8:
    case Type::I8:
    case Type::Bool:
      return 1;
    case Type::U16:
    case Type::I16:
      return 2;
    case Type::U32:
    case Type::I32:
    case Type::F32:
      return 4;
    case Type::U64:
    case Type::I64:
    case Type::F64:
      return 8;
    case Type::Text:
    case Type::Array:
      break;
  }
  return std::nullopt;
}

bool GgufMetadata::is_signed(Type type) {
  return type == Type::I8 || type == Type::I16 || type == Type::I32 || type == Type::I64;
}

bool GgufMetadata::is_integer(Type type) {
  return is_signed(type) || type == Type::U8 || type == Type::U16 || type == Type::U32 ||
         type == Type::U64;
}

GgufMetadata::Type GgufMetadata::read_type(ByteReader& reader, const std::string& what) {
  const auto number = reader.number<std::uint32_t>(what);
  if (number > static_cast<std::uint32_t>(Type::F64)) {
    throw Error("{}: {}: expected a type from 0 to {}, found {}", reader.file(), what,
                static_cast<std::uint32_t>(Type::F64), number);
  }
  return static_cast<Type>(number);
}

GgufMetadata::Value GgufMetadata::read_value(ByteReader& reader, const std::string& what) {
  Value value;
  value.type = read_type(reader, what);
  if (value.type == Type::Array) {
    value.is_array = true;
    value.type = read_type(reader, what);
    if (value.type == Type::Array) {
      throw Error("{}: {}: an array of arrays is not supported", reader.file(), what);
    }
    value.count = reader.number<std::uint64_t>(what);
  }
  if (const auto size = width(value.type)) {
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(value.count, *size, &bytes)) bytes = UINT64_MAX;
    value.bytes = reader.take(bytes, what);
    if (value.type == Type::Bool) {
      for (const std::byte byte : value.bytes) {
        if (std::to_integer<int>(byte) > 1) {
          throw Error("{}: {}: expected true or false as 1 or 0, found {}", reader.file(), what,
                      std::to_integer<int>(byte));
        }
      }
    }
    return value;
  }
  // Texts: walked through once, so that later each is known to lie in the file.
  const char* begin = nullptr;
  std::size_t total = 0;
  for (std::uint64_t i = 0; i < value.count; ++i) {
    const std::string_view text = reader.text(what);
    if (begin == nullptr) begin = text.data() - kLengthBytes;
    total += kLengthBytes + text.size();
  }
  value.bytes = {reinterpret_cast<const std::byte*>(begin), total};
  return value;
}

std::vector<std::string_view> GgufMetadata::keys() const {
  std::vector<std::string_view> keys;
  keys.reserve(values_.size());
  for (const auto& [key, value] : values_) keys.push_back(key);
  return keys;
}

// One that is too large for 64 bits with a sign becomes -1, which nobody expects.
std::int64_t GgufMetadata::integer(const Value& value, std::size_t index) {
  const std::size_t size = *width(value.type);
  const auto bytes = value.bytes.subspan(index * size, size);
  switch (value.type) {
    case Type::I8:
      return static_cast<std::int8_t>(ByteReader::little_endian<std::uint8_t>(bytes));
    case Type::I16:
      return static_cast<std::int16_t>(ByteReader::little_endian<std::uint16_t>(bytes));
    case Type::I32:
      return static_cast<std::int32_t>(ByteReader::little_endian<std::uint32_t>(bytes));
    case Type::U8:
      return ByteReader::little_endian<std::uint8_t>(bytes);
    case Type::U16:
      return ByteReader::little_endian<std::uint16_t>(bytes);
    case Type::U32:
      return ByteReader::little_endian<std::uint32_t>(bytes);
    default:
      break;
  }
  const auto wide = ByteReader::little_endian<std::uint64_t>(bytes);
  if (value.type == Type::U64 && wide > std::numeric_limits<std::int64_t>::max()) return -1;
  return static_cast<std::int64_t>(wide);
}

double GgufMetadata::real(const Value& value, std::size_t index) {
  const auto bytes = value.bytes.subspan(index * *width(value.type));
  if (value.type == Type::F32) {
    return std::bit_cast<float>(ByteReader::little_endian<std::uint32_t>(bytes));
  }
  if (value.type == Type::F64) {
    return std::bit_cast<double>(ByteReader::little_endian<std::uint64_t>(bytes));
  }
  return static_cast<double>(integer(value, index));
}

std::string_view GgufMetadata::first_text(std::span<const std::byte> bytes) {
  const auto length = static_cast<std::size_t>(ByteReader::little_endian<std::uint64_t>(bytes));
  return {reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length};
}

const GgufMetadata::Value& GgufMetadata::at(std::string_view key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) throw Error("{}: '{}' is missing", file_, key);
  return found->second;
}

std::string GgufMetadata::describe(const Value& value) {
  if (value.is_array) return fmt::format("an array of {}", value.count);
  if (value.type == Type::Text) {
    return fmt::format("'{}'", printable(first_text(value.bytes), 60));
  }
  if (value.type == Type::Bool) return value.bytes[0] == std::byte{1} ? "true" : "false";
  if (is_integer(value.type)) {
    if (value.type == Type::U64) {
      return std::to_string(ByteReader::little_endian<std::uint64_t>(value.bytes));
    }
    return std::to_string(integer(value, 0));
  }
  return fmt::format("{}", real(value, 0));
}

void GgufMetadata::refuse(std::string_view key, std::string_view expected) const {
  throw Error("{}: '{}': expected {}, found {}", file_, printable(key), expected,
              describe(at(key)));
}

std::size_t GgufMetadata::size(std::string_view key, std::size_t min, std::size_t max) const {
  const Value& value = at(key);
  if (!value.is_array && is_integer(value.type)) {
    const std::int64_t number = integer(value, 0);
    if (number >= 0 && static_cast<std::uint64_t>(number) >= min &&
        static_cast<std::uint64_t>(number) <= max) {
      return static_cast<std::size_t>(number);
    }
  }
  refuse(key, fmt::format("a whole number from {} to {}", min, max));
}

std::optional<std::size_t> GgufMetadata::find_size(std::string_view key, std::size_t min,
                                                   std::size_t max) const {
  return has(key) ? std::optional(size(key, min, max)) : std::nullopt;
}

double GgufMetadata::number(std::string_view key) const {
  const Value& value = at(key);
  if (!value.is_array && value.type != Type::Text && value.type != Type::Bool) {
    const double number = real(value, 0);
    if (std::isfinite(number)) return number;
  }
  refuse(key, "a number");
}

double GgufMetadata::number(std::string_view key, double min, double max) const {
  const double found = number(key);
  if (found >= min && found <= max) return found;
  refuse(key, fmt::format("a number from {} to {}", min, max));
}

bool GgufMetadata::flag_or(std::string_view key, bool fallback) const {
  if (!has(key)) return fallback;
  const Value& value = at(key);
  if (value.is_array || value.type != Type::Bool) refuse(key, "true or false");
  return value.bytes[0] == std::byte{1};
}

std::string_view GgufMetadata::text(std::string_view key) const {
  const Value& value = at(key);
  if (value.is_array || value.type != Type::Text) refuse(key, "a text");
  return first_text(value.bytes);
}

std::string_view GgufMetadata::text_or(std::string_view key, std::string_view fallback) const {
  return has(key) ? text(key) : fallback;
}

const GgufMetadata::Value& GgufMetadata::array(std::string_view key, std::string_view what) const {
  const Value& value = at(key);
  if (!value.is_array) refuse(key, what);
  return value;
}

std::vector<std::string_view> GgufMetadata::texts(std::string_view key) const {
  constexpr std::string_view kWhat = "an array of texts";
  const Value& value = array(key, kWhat);
  if (value.type != Type::Text) refuse(key, kWhat);
  std::vector<std::string_view> texts;
  texts.reserve(value.count);  // each takes eight bytes of the file, or more
  for (std::size_t at = 0; at < value.bytes.size();) {
    texts.push_back(first_text(value.bytes.subspan(at)));
    at += kLengthBytes + texts.back().size();
  }
  return texts;
}

std::vector<std::int64_t> GgufMetadata::integers(std::string_view key) const {
  constexpr std::string_view kWhat = "an array of whole numbers";
  const Value& value = array(key, kWhat);
  if (!is_integer(value.type)) refuse(key, kWhat);
  std::vector<std::int64_t> numbers(value.count);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = integer(value, i);
  return numbers;
}

std::vector<double> GgufMetadata::numbers(std::string_view key) const {
  constexpr std::string_view kWhat = "an array of numbers";
  const Value& value = array(key, kWhat);
  if (value.type == Type::Text || value.type == Type::Bool) refuse(key, kWhat);
  std::vector<double> numbers(value.count);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = real(value, i);
  return numbers;
}

bool GgufMetadata::is_neutral(std::string_view key) const {
  const Value& value = at(key);
  if (value.is_array) return value.count == 0;
  if (value.type == Type::Text) {
    const std::string_view text = first_text(value.bytes);
    return text.empty() || text == "none";
  }
  if (value.type == Type::Bool) return value.bytes[0] == std::byte{0};
  return real(value, 0) == 0.0;
}

}  // namespace stagecraft
