#pragma once

#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/stored_tensor.h"

namespace stagecraft {

using TensorMap = std::map<std::string, const StoredTensor*, std::less<>>;

// The types that a part may have: floats, 32-bit words of packed integers, or bytes.
inline constexpr DType kFloatTypes[] = {DType::F32, DType::F16, DType::BF16};
inline constexpr DType kWordTypes[] = {DType::I32};
inline constexpr DType kByteTypes[] = {DType::U8};

// The tensors in which one matrix is stored, named "MATRIX.PART" or "MATRIX_PART". The functions
// take_... remove a tensor from the map and return it. They throw Error naming the tensor if
// it is missing or has another type or shape.
class MatrixParts {
 public:
  // prefix: the start of the names of all parts, such as "MATRIX.". where: the name of the file,
  // for errors. `tensors` and `where` must outlive this object.
  MatrixParts(TensorMap& tensors, std::string_view prefix, const std::string& where)
      : tensors_(tensors), prefix_(prefix), where_(where) {}

  bool has(std::string_view part) const { return tensors_.contains(name(part)); }

  // The part whose shape gives the size of the matrix, or of several matrices. It must have n_sizes
  // dimensions, each at least 1.
  const StoredTensor& take_matrix(std::string_view part, std::span<const DType> dtypes,
                                  std::size_t n_sizes = 2);
  const StoredTensor& take_shaped(std::string_view part, std::span<const DType> dtypes,
                                  const std::vector<std::size_t>& shape);
  // A part with one element. Its shape may be [], [1] or [1, 1]: PyTorch writes all of these.
  const StoredTensor& take_number(std::string_view part, std::span<const DType> dtypes);
  // Removes a part that has no effect on the matrix.
  void drop(std::string_view part) { tensors_.erase(name(part)); }

  [[noreturn]] void refuse(std::string_view part, std::string_view expected,
                           std::string_view found) const;
  std::string name(std::string_view part) const;

  // The numbers of a part as f32.
  std::vector<float> floats_of(const StoredTensor& tensor) const;

 private:
  const StoredTensor& take(std::string_view part, std::span<const DType> dtypes);

  TensorMap& tensors_;
  std::string prefix_;
  const std::string& where_;
};

// A copy of the elements of a tensor, which need not be aligned in the file.
template <class T>
std::vector<T> copy_of(const StoredTensor& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

}  // namespace stagecraft
