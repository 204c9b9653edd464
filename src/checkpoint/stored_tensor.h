#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace stagecraft {

// A tensor as it lies in a mapped file: a name, a type, a shape and the bytes. The bytes belong to
// the file and live as long as it; they need not be aligned.
struct StoredTensor {
  std::string name;
  DType dtype = DType::F32;
  std::vector<std::size_t> shape;
  std::span<const std::byte> bytes;
};

// "[576, 1536]"; "[]" for a scalar.
std::string shape_text(std::span<const std::size_t> shape);

}  // namespace stagecraft
