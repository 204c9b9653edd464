#include "text/formats/protobuf.h"

#include <bit>

#include "base/error.h"
#include "base/utf8.h"

namespace stagecraft {

ProtobufReader::ProtobufReader(std::string_view bytes, std::string where)
    : bytes_(bytes), where_(std::move(where)) {}

std::optional<ProtobufReader::Field> ProtobufReader::next() {
  if (position_ == bytes_.size()) return std::nullopt;
  const std::size_t begin = position_;
  const std::uint64_t key = varint();
  const std::uint64_t number = key >> 3;
  if (number == 0 || number >= (1u << 29)) {
    throw Error(
        "{}: byte {}: expected a field number from 1 to 536870911, found {}: this is not a "
        "protobuf",
        where_, begin, number);
  }
  Field field;
  field.where_ = &where_;
  field.number_ = static_cast<std::uint32_t>(number);
  switch (key & 7) {
    case 0:
      field.value_ = varint();
      break;
    case 1:
      field.value_ = fixed(8);
      break;
    case 2:
      field.bytes_ = take(varint());
      break;
    case 5:
      field.value_ = fixed(4);
      break;
    default:
      throw Error("{}: byte {}: field {}: expected wire type 0, 1, 2 or 5, found {}", where_, begin,
                  number, key & 7);
  }
  field.kind_ = static_cast<Field::Kind>(key & 7);
  return field;
}

std::uint64_t ProtobufReader::varint() {
  const std::size_t begin = position_;
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(1)[0]);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  throw Error("{}: byte {}: expected a number of at most 10 bytes, found more", where_, begin);
}

std::uint64_t ProtobufReader::fixed(std::size_t n_bytes) {
  std::uint64_t value = 0;
  unsigned shift = 0;
  for (const char byte : take(n_bytes)) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(byte)) << shift;
    shift += 8;
  }
  return value;
}

std::string_view ProtobufReader::take(std::uint64_t n_bytes) {
  if (n_bytes > bytes_.size() - position_) {
    throw Error("{}: byte {}: expected {} more bytes, found {}: the file is cut short or damaged",
                where_, position_, n_bytes, bytes_.size() - position_);
  }
  position_ += static_cast<std::size_t>(n_bytes);
  return bytes_.substr(position_ - static_cast<std::size_t>(n_bytes),
                       static_cast<std::size_t>(n_bytes));
}

void ProtobufReader::Field::expect(Kind kind, std::string_view name,
                                   std::string_view expected) const {
  if (kind_ == kind) return;
  const char* found = kind_ == Kind::Varint       ? "a whole number"
                      : kind_ == Kind::EightBytes ? "a number of 8 bytes"
                      : kind_ == Kind::FourBytes  ? "a number of 4 bytes"
                                                  : "bytes";
  throw Error("{}: {}: expected {}, found {}", *where_, name, expected, found);
}

std::string_view ProtobufReader::Field::bytes(std::string_view name) const {
  expect(Kind::Bytes, name, "bytes");
  return bytes_;
}

std::string_view ProtobufReader::Field::text(std::string_view name) const {
  expect(Kind::Bytes, name, "a text");
  check_utf8(fmt::format("{}: {}", *where_, name), bytes_);
  return bytes_;
}

bool ProtobufReader::Field::flag(std::string_view name) const {
  expect(Kind::Varint, name, "true or false");
  return value_ != 0;
}

// Negative numbers are stored as 64 bits; the lower half is the value.
std::int32_t ProtobufReader::Field::integer(std::string_view name) const {
  expect(Kind::Varint, name, "a whole number");
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(value_));
}

float ProtobufReader::Field::real(std::string_view name) const {
  expect(Kind::FourBytes, name, "a number of 4 bytes");
  return std::bit_cast<float>(static_cast<std::uint32_t>(value_));
}

}  // namespace stagecraft
