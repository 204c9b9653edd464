#include "tensor/stored_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stagecraft {

std::size_t element_count(const StoredTensor& tensor) {
  const DTypeBlock block = dtype_block(tensor.dtype);
  return tensor.bytes.size() / block.bytes * block.elements;
}

std::string shape_text(std::span<const std::size_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace stagecraft
