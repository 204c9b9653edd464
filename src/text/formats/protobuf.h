#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stagecraft {

// Reads the fields of a message in the wire format of Protocol Buffers
// (protobuf.dev/programming-guides/encoding), one after the other. A field has a number and a value
// of one of these kinds:
//   a varint; 8 bytes; a length and that many bytes; 4 bytes
// The functions that return a value throw Error "WHERE: NAME: expected ..., found ..." if it is of
// another kind. Returned texts are views into `bytes`. Groups, an obsolete kind, are rejected.
class ProtobufReader {
 public:
  // `where` names the message in errors.
  ProtobufReader(std::string_view bytes, std::string where);

  class Field {
   public:
    std::uint32_t number() const { return number_; }

    std::string_view bytes(std::string_view name) const;
    std::string_view text(std::string_view name) const;  // UTF-8
    bool flag(std::string_view name) const;
    std::int32_t integer(std::string_view name) const;
    float real(std::string_view name) const;

   private:
    friend class ProtobufReader;
    enum class Kind { Varint = 0, EightBytes = 1, Bytes = 2, FourBytes = 5 };
    void expect(Kind kind, std::string_view name, std::string_view expected) const;

    const std::string* where_ = nullptr;
    std::uint32_t number_ = 0;
    Kind kind_ = Kind::Varint;
    std::uint64_t value_ = 0;
    std::string_view bytes_;
  };

  // nullopt at the end. A field must not outlive the reader. Throws Error if a field is cut short.
  std::optional<Field> next();

 private:
  std::uint64_t varint();
  std::uint64_t fixed(std::size_t n_bytes);
  std::string_view take(std::uint64_t n_bytes);

  std::string_view bytes_;
  std::string where_;
  std::size_t position_ = 0;
};

}  // namespace stagecraft
