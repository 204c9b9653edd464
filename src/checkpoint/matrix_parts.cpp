#include "checkpoint/matrix_parts.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/alternatives.h"
#include "base/error.h"
#include "checkpoint/convert_tensor.h"

namespace stagecraft {
namespace {

std::string dtype_names(std::span<const DType> dtypes) {
  std::vector<std::string_view> names;
  for (const DType dtype : dtypes) names.push_back(dtype_name(dtype));
  return alternatives(std::move(names));
}

}  // namespace

const StoredTensor& MatrixParts::take_matrix(std::string_view part, std::span<const DType> dtypes,
                                             std::size_t n_sizes) {
  const StoredTensor& tensor = take(part, dtypes);
  const std::vector<std::size_t>& shape = tensor.shape;
  if (shape.size() == n_sizes && std::ranges::count(shape, 0u) == 0) return tensor;
  refuse(part, fmt::format("{} dimensions of at least 1", n_sizes), shape_text(shape));
}

const StoredTensor& MatrixParts::take_shaped(std::string_view part, std::span<const DType> dtypes,
                                             const std::vector<std::size_t>& shape) {
  const StoredTensor& tensor = take(part, dtypes);
  if (tensor.shape == shape) return tensor;
  refuse(part, shape_text(shape), shape_text(tensor.shape));
}

const StoredTensor& MatrixParts::take_number(std::string_view part, std::span<const DType> dtypes) {
  const StoredTensor& tensor = take(part, dtypes);
  if (element_count(tensor) == 1) return tensor;
  refuse(part, "one number", shape_text(tensor.shape));
}

void MatrixParts::refuse(std::string_view part, std::string_view expected,
                         std::string_view found) const {
  throw Error("{}: tensor '{}': expected {}, found {}", where_, printable(name(part)), expected,
              found);
}

std::string MatrixParts::name(std::string_view part) const {
  return fmt::format("{}{}", prefix_, part);
}

std::vector<float> MatrixParts::floats_of(const StoredTensor& tensor) const {
  std::vector<float> values;
  convert_tensor(tensor, DType::F32, where_, [&](std::span<const std::byte> piece) {
    const std::size_t at = values.size();
    values.resize(at + piece.size() / sizeof(float));
    std::memcpy(&values[at], piece.data(), piece.size());
  });
  return values;
}

const StoredTensor& MatrixParts::take(std::string_view part, std::span<const DType> dtypes) {
  const auto found = tensors_.find(name(part));
  if (found == tensors_.end()) refuse(part, dtype_names(dtypes), "none");
  const StoredTensor& tensor = *found->second;
  if (std::ranges::find(dtypes, tensor.dtype) == dtypes.end()) {
    refuse(part, dtype_names(dtypes), dtype_name(tensor.dtype));
  }
  tensors_.erase(found);
  return tensor;
}

}  // namespace stagecraft
