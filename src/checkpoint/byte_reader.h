#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace stagecraft {

// Reads little-endian numbers and texts from the bytes of a file, one after the other. A read
// beyond the end throws Error "FILE: WHAT: ...". The results of text and take point into the bytes.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string file)
      : bytes_(bytes), file_(std::move(file)) {}

  template <std::unsigned_integral T>
  T number(std::string_view what) {
    return little_endian<T>(take(sizeof(T), what));
  }

  // Reads the number of bytes of a text (64 bits), then these bytes.
  std::string_view text(std::string_view what) {
    const std::span<const std::byte> bytes = take(number<std::uint64_t>(what), what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // The next `size` bytes. `size` may be an unchecked number from the file.
  std::span<const std::byte> take(std::uint64_t size, std::string_view what) {
    if (size > bytes_.size() - position_) {
      throw Error("{}: {}: expected {} bytes, found {}: the file is cut short or damaged", file_,
                  what, size, bytes_.size() - position_);
    }
    position_ += static_cast<std::size_t>(size);
    return bytes_.subspan(position_ - static_cast<std::size_t>(size),
                          static_cast<std::size_t>(size));
  }

  std::size_t position() const { return position_; }
  const std::string& file() const { return file_; }

  // The number in the first sizeof(T) bytes. `bytes` must not be shorter.
  template <std::unsigned_integral T>
  static T little_endian(std::span<const std::byte> bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
    }
    return static_cast<T>(value);
  }

 private:
  std::span<const std::byte> bytes_;
  std::string file_;
  std::size_t position_ = 0;
};

}  // namespace stagecraft
