#include "checkpoint/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "operators/read_row.h"

namespace stagecraft {
namespace {

// Row by row, the numbers of a tensor of one or more dimensions: a row has the last dimension.
class Rows {
 public:
  Rows(const StoredTensor& tensor, std::size_t count, std::size_t width)
      : matrix_(tensor), numbers_(width), floats_(tensor.dtype == DType::F64 ? 0 : width) {
    matrix_.shape = {count / width, width};
  }

  std::span<const double> read(std::size_t row) {
    if (matrix_.dtype == DType::F64) {
      const std::size_t bytes = numbers_.size() * sizeof(double);
      std::memcpy(numbers_.data(), matrix_.bytes.data() + row * bytes, bytes);
    } else {
      read_row(matrix_, row, floats_);
      std::copy(floats_.begin(), floats_.end(), numbers_.begin());
    }
    return numbers_;
  }

 private:
  StoredTensor matrix_;
  std::vector<double> numbers_;
  std::vector<float> floats_;
};

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

double finite(double value) { return std::isfinite(value) ? std::fabs(value) : 0.0; }

void add(const Gap& gap, Comparison& result) {
  result.nan_a += std::isnan(gap.a) ? 1 : 0;
  result.nan_b += std::isnan(gap.b) ? 1 : 0;
  const bool differs = gap.differs();
  if (differs && ++result.differing == 1) {
    result.first = gap;
    result.worst = gap;  // from here on, only elements that differ count
  }
  if ((differs || result.differing == 0) && gap.size() > result.worst.size()) result.worst = gap;
}

// The root mean square of the finite numbers: NaN or infinity must not raise the tolerance of the
// other numbers in its row.
double root_mean_square(std::span<const double> row) {
  double sum = 0.0;
  for (const double value : row) sum += std::isfinite(value) ? value * value : 0.0;
  const double rms = std::sqrt(sum / static_cast<double>(row.size()));
  return std::isfinite(rms) ? rms : 0.0;
}

}  // namespace

double Gap::size() const {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0.0;
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::infinity();
  return std::fabs(a - b);
}

bool Gap::differs() const { return size() > allowed || std::isinf(size()); }

Comparison compare_tensors(const StoredTensor& a, const StoredTensor& b, Tolerance tolerance) {
  check_dtype(a);
  check_dtype(b);
  if (a.shape != b.shape) {
    throw Error("tensor '{}': the shapes {} and {} disagree", printable(a.name),
                shape_text(a.shape), shape_text(b.shape));
  }
  Comparison result;
  result.count = a.bytes.size() / dtype_block(a.dtype).bytes;
  if (result.count == 0) return result;  // the other sizes of an empty shape may be huge
  const std::size_t width = a.shape.empty() ? 1 : a.shape.back();
  Rows rows_a(a, result.count, width);
  Rows rows_b(b, result.count, width);
  for (std::size_t r = 0; r < result.count / width; ++r) {
    const std::span<const double> row_a = rows_a.read(r);
    const std::span<const double> row_b = rows_b.read(r);
    const double rms = std::min(root_mean_square(row_a), root_mean_square(row_b));
    for (std::size_t i = 0; i < width; ++i) {
      const double scale = std::max({finite(row_a[i]), finite(row_b[i]), rms});
      add({r * width + i, row_a[i], row_b[i], tolerance.absolute + tolerance.relative * scale},
          result);
    }
  }
  return result;
}

}  // namespace stagecraft
