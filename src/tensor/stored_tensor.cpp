#include "tensor/stored_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace stagecraft {

std::size_t element_count(const StoredTensor& tensor) {
  const DTypeBlock block = dtype_block(tensor.dtype);
  return tensor.bytes.size() / block.bytes * block.elements;
}

std::size_t byte_size(DType dtype, std::span<const std::size_t> shape, std::string_view where) {
  const DTypeBlock block = dtype_block(dtype);
  const std::size_t columns = shape.empty() ? 1 : shape.back();
  if (columns % block.elements != 0) {
    throw Error("{}: {}: expected rows of a multiple of {} elements, found {}", where,
                dtype_name(dtype), block.elements, columns);
  }
  std::size_t n_elements = 1, n_bytes = 0;
  bool too_large = false;
  for (const std::size_t n : shape) {
    too_large |= __builtin_mul_overflow(n_elements, n, &n_elements);
  }
  too_large |= __builtin_mul_overflow(n_elements / block.elements, block.bytes, &n_bytes);
  if (too_large) {
    throw Error("{}: {} takes more bytes than 64 bits can count", where, shape_text(shape));
  }
  return n_bytes;
}

std::string shape_text(std::span<const std::size_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace stagecraft
