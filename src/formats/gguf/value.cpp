#include "formats/gguf/value.h"

#include <bit>
#include <limits>

namespace stagecraft {
namespace {

constexpr std::size_t kBytesOfALength = 8;

}  // namespace

std::size_t GgufValue::width(Type type) {
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
  return 0;
}

GgufValue::Type GgufValue::read_type(ByteReader& reader, const std::string& what) {
  const auto number = reader.number<std::uint32_t>(what);
  if (number > static_cast<std::uint32_t>(Type::F64)) {
    throw Error("{}: {}: expected a type from 0 to {}, found {}", reader.file(), what,
                static_cast<std::uint32_t>(Type::F64), number);
  }
  return static_cast<Type>(number);
}

GgufValue GgufValue::read(ByteReader& reader, const std::string& what) {
  GgufValue value;
  value.type_ = read_type(reader, what);
  if (value.type_ == Type::Array) {
    value.is_array_ = true;
    value.type_ = read_type(reader, what);
    if (value.type_ == Type::Array) {
      throw Error("{}: {}: an array of arrays is not supported", reader.file(), what);
    }
    value.count_ = reader.number<std::uint64_t>(what);
  }
  if (value.type_ == Type::Text) {  // read all of them once: this checks that each is in the file
    const char* begin = nullptr;
    std::size_t size = 0;
    for (std::uint64_t i = 0; i < value.count_; ++i) {
      const std::string_view text = reader.text(what);
      if (begin == nullptr) begin = text.data() - kBytesOfALength;
      size += text_size(text);
    }
    value.bytes_ = {reinterpret_cast<const std::byte*>(begin), size};
    return value;
  }
  std::uint64_t size = 0;
  if (__builtin_mul_overflow(value.count_, width(value.type_), &size)) size = UINT64_MAX;
  value.bytes_ = reader.take(size, what);
  if (!value.is_flag()) return value;
  for (const std::byte byte : value.bytes_) {
    if (std::to_integer<int>(byte) <= 1) continue;
    throw Error("{}: {}: expected true or false as 1 or 0, found {}", reader.file(), what,
                std::to_integer<int>(byte));
  }
  return value;
}

bool GgufValue::is_integer() const {
  return is_number() && type_ != Type::F32 && type_ != Type::F64;
}

bool GgufValue::is_number() const { return !is_text() && !is_flag(); }

std::int64_t GgufValue::integer(std::size_t index) const {
  const std::size_t size = width(type_);
  const auto bytes = bytes_.subspan(index * size, size);
  switch (type_) {
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
  if (type_ == Type::U64 && wide > std::numeric_limits<std::int64_t>::max()) return -1;
  return static_cast<std::int64_t>(wide);
}

double GgufValue::number(std::size_t index) const {
  const auto bytes = bytes_.subspan(index * width(type_));
  if (type_ == Type::F32) {
    return std::bit_cast<float>(ByteReader::little_endian<std::uint32_t>(bytes));
  }
  if (type_ == Type::F64) {
    return std::bit_cast<double>(ByteReader::little_endian<std::uint64_t>(bytes));
  }
  return static_cast<double>(integer(index));
}

std::string_view GgufValue::text_at(std::size_t byte) const {
  const auto bytes = bytes_.subspan(byte);
  const auto length = static_cast<std::size_t>(ByteReader::little_endian<std::uint64_t>(bytes));
  return {reinterpret_cast<const char*>(bytes.data()) + kBytesOfALength, length};
}

std::size_t GgufValue::text_size(std::string_view text) { return kBytesOfALength + text.size(); }

std::string GgufValue::describe() const {
  if (is_array_) return fmt::format("an array of {}", count_);
  if (is_text()) return fmt::format("'{}'", printable(text(), 60));
  if (is_flag()) return flag() ? "true" : "false";
  if (type_ == Type::U64) {
    return std::to_string(ByteReader::little_endian<std::uint64_t>(bytes_));
  }
  if (is_integer()) return std::to_string(integer());
  return fmt::format("{}", number());
}

}  // namespace stagecraft
