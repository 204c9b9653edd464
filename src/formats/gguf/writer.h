#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf/value.h"
#include "tensor/dtype.h"

namespace stagecraft {

// Builds the header of a GGUF file (version 3) from metadata pairs and tensors. The caller writes
// the data after it: the tensors in the order of add_tensor, each padded with zeros to kAlignment.
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
  void add(std::string_view key, const GgufValue& value);  // of another file, unchanged

  // shape: [rows, columns], as everywhere in the engine. Throws Error if GGUF has no number for the
  // type.
  void add_tensor(std::string_view name, DType dtype, std::span<const std::size_t> shape);

  // The whole header, padded to kAlignment.
  std::string header() const;
  // The header of a file with the same pairs and no tensors.
  std::string header_without_tensors() const;

  static constexpr std::size_t kAlignment = 32;
  static std::string padding(std::size_t size);  // zeros up to the next multiple of kAlignment

 private:
  void begin(std::string_view key, GgufValueType type);
  std::string put_together(std::uint64_t n_tensors, std::string_view tensors) const;

  std::string pairs_, tensors_;
  std::uint64_t n_pairs_ = 0, n_tensors_ = 0, data_size_ = 0;
};

}  // namespace stagecraft
