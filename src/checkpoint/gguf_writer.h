#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace stagecraft {

// Builds the head of a GGUF file (version 3), pair by pair and tensor by tensor. The data follows
// it: each tensor in the order of add_tensor, padded to kAlignment with zeros.
class GgufWriter {
 public:
  void add(std::string_view key, std::uint32_t value);
  void add(std::string_view key, float value);
  void add(std::string_view key, bool value);
  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, const char* value) { add(key, std::string_view(value)); }
  void add(std::string_view key, const std::vector<std::string>& values);
  void add(std::string_view key, const std::vector<std::int32_t>& values);
  void add(std::string_view key, const std::vector<float>& values);

  // shape: [rows, columns], as everywhere here. Throws Error if GGUF has no number for the type.
  void add_tensor(std::string_view name, DType dtype, std::span<const std::size_t> shape);

  // All of it, padded.
  std::string header() const;
  // The pairs alone, as a file without tensors has them.
  std::string header_without_tensors() const;

  static constexpr std::size_t kAlignment = 32;
  static std::string padding(std::size_t size);  // from `size` to the next multiple

 private:
  void begin(std::string_view key, std::uint32_t type);
  std::string put_together(std::uint64_t n_tensors, std::string_view tensors) const;

  std::string pairs_, tensors_;
  std::uint64_t n_pairs_ = 0, n_tensors_ = 0, data_size_ = 0;
};

}  // namespace stagecraft
