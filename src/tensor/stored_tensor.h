#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace stagecraft {

static_assert(std::endian::native == std::endian::little,
              "all file formats are little-endian, and their bytes are read in place");

// One tensor of a mapped file: name, type, shape (the outermost dimension first) and bytes. The
// bytes belong to the file and are valid as long as it is mapped. They need not be aligned.
struct StoredTensor {
  std::string name;
  DType dtype = DType::F32;
  std::vector<std::size_t> shape;
  std::span<const std::byte> bytes;
};

// The elements of a tensor. If their address in the file is not aligned for T, they are copied into
// `copy`, and the view points to the copy; otherwise `copy` is not touched. T must have the size of
// the tensor's dtype.
template <class T>
std::span<const T> elements(const StoredTensor& tensor, std::vector<T>& copy) {
  const std::byte* bytes = tensor.bytes.data();
  const std::size_t n = tensor.bytes.size() / sizeof(T);
  if (reinterpret_cast<std::uintptr_t>(bytes) % alignof(T) == 0) {
    return {reinterpret_cast<const T*>(bytes), n};
  }
  copy.resize(n);
  std::memcpy(copy.data(), bytes, n * sizeof(T));
  return copy;
}

// The number of elements that the tensor's bytes hold.
std::size_t element_count(const StoredTensor& tensor);

// The number of bytes of a tensor with this type and shape. Throws Error "WHERE: ..." if its rows
// are not whole blocks, or if 64 bits cannot count its elements or its bytes.
std::size_t byte_size(DType dtype, std::span<const std::size_t> shape, std::string_view where);

// "[576, 1536]"; "[]" for a scalar.
std::string shape_text(std::span<const std::size_t> shape);

}  // namespace stagecraft
