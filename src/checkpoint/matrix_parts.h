#pragma once

#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/stored_tensor.h"

namespace stagecraft {

using TensorMap = std::map<std::string, const StoredTensor*, std::less<>>;

// Types that parts may have.
inline constexpr DType kFloatTypes[] = {DType::F32, DType::F16, DType::BF16};
inline constexpr DType kWordTypes[] = {DType::I32};
inline constexpr DType kByteTypes[] = {DType::U8};

// The tensors that one matrix is stored in: "MATRIX.PART", or "MATRIX_PART". Each that is asked for
// is taken out of the map. Throws Error naming the tensor that is missing or has another type or
// shape.
class MatrixParts {
 public:
  // prefix: what the names of all parts begin with, "MATRIX.". where: names the file in errors. It
  // and the map must outlive this.
  MatrixParts(TensorMap& tensors, std::string_view prefix, const std::string& where)
      : tensors_(tensors), prefix_(prefix), where_(where) {}

  bool has(std::string_view part) const { return tensors_.contains(name(part)); }

  // The part that gives the size of the matrix, or of several matrices. It has n_sizes sizes, each
  // at least 1.
  const StoredTensor& matrix(std::string_view part, std::span<const DType> dtypes,
                             std::size_t n_sizes = 2);
  const StoredTensor& of_shape(std::string_view part, std::span<const DType> dtypes,
                               const std::vector<std::size_t>& shape);
  // One number: PyTorch writes it as [], as [1] or as [1, 1].
  const StoredTensor& one_number(std::string_view part, std::span<const DType> dtypes);
  // A part that is known and changes nothing.
  void leave_out(std::string_view part) { tensors_.erase(name(part)); }

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

// The elements of a tensor, which in the file need not be aligned.
template <class T>
std::vector<T> copy_of(const StoredTensor& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

}  // namespace stagecraft
