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

// The elements of a tensor, where they lie. A file may put them at a byte where no T can lie: then
// they are copied into `copy`, which is left alone otherwise, and the view is of that. T is as
// large as the tensor's dtype.
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
