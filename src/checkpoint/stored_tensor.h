#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
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

// The elements of a tensor. If the file stores them at an address that is not aligned for T, they
// are copied into `copy` and the view is of the copy; otherwise `copy` stays empty. T has the size
// of the tensor's dtype.
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

// How many numbers the tensor holds.
std::size_t element_count(const StoredTensor& tensor);

// "[576, 1536]"; "[]" for a scalar.
std::string shape_text(std::span<const std::size_t> shape);

}  // namespace stagecraft
