#include "checkpoint/compare.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "operators/widen.h"

namespace stagecraft {
namespace {

template <class T>
T read(const StoredTensor& tensor, std::size_t index) {
  T value;
  std::memcpy(&value, tensor.bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

double element(const StoredTensor& tensor, std::size_t index) {
  if (tensor.dtype == DType::F64) return read<double>(tensor, index);
  if (tensor.dtype == DType::F32) return static_cast<double>(read<float>(tensor, index));
  const auto bits = read<std::uint16_t>(tensor, index);
  float wide = 0.0f;
  (tensor.dtype == DType::F16 ? widen_f16 : widen_bf16)({&bits, 1}, {&wide, 1});
  return static_cast<double>(wide);
}

void check_dtype(const StoredTensor& tensor) {
  switch (tensor.dtype) {
    case DType::F64:
    case DType::F32:
    case DType::F16:
    case DType::BF16:
      return;
    default:
      throw Error("tensor '{}': expected F64, F32, F16 or BF16, found {}", printable(tensor.name),
                  dtype_name(tensor.dtype));
  }
}

}  // namespace

double Tolerance::allowed(double a, double b) const {
  return absolute + relative * std::fmax(std::fabs(a), std::fabs(b));
}

bool Tolerance::same(double a, double b) const {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::fabs(a - b) <= allowed(a, b);
}

double Gap::size() const {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0.0;
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::infinity();
  return std::fabs(a - b);
}

Comparison compare_tensors(const StoredTensor& a, const StoredTensor& b, Tolerance tolerance) {
  check_dtype(a);
  check_dtype(b);
  if (a.shape != b.shape) {
    throw Error("tensor '{}': the shapes {} and {} disagree", printable(a.name),
                shape_text(a.shape), shape_text(b.shape));
  }
  Comparison result;
  result.count = a.bytes.size() / dtype_size(a.dtype);
  for (std::size_t i = 0; i < result.count; ++i) {
    const Gap gap{i, element(a, i), element(b, i)};
    result.nan_a += std::isnan(gap.a) ? 1 : 0;
    result.nan_b += std::isnan(gap.b) ? 1 : 0;
    const bool differs = !tolerance.same(gap.a, gap.b);
    if (differs && ++result.differing == 1) {
      result.first = gap;
      result.worst = gap;  // from here on only those that differ count
    }
    if ((differs || result.differing == 0) && gap.size() > result.worst.size()) result.worst = gap;
  }
  return result;
}

}  // namespace stagecraft
