#include "operators/read_row.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "operators/check.h"
#include "operators/dequantize.h"
#include "operators/half_to_float.h"

namespace stagecraft {

bool is_readable(DType dtype) { return is_float(dtype) || is_quantized(dtype); }

void read_row(const StoredTensor& matrix, std::size_t row, std::span<float> out) {
  check_size("read_row", "out", matrix.shape[1], out.size());
  const std::size_t row_bytes = matrix.bytes.size() / matrix.shape[0];
  const std::span<const std::byte> bytes = matrix.bytes.subspan(row * row_bytes, row_bytes);
  if (matrix.dtype == DType::F32) {
    std::memcpy(out.data(), bytes.data(), bytes.size());
  } else if (is_quantized(matrix.dtype)) {
    dequantize(matrix.dtype, bytes, out);
  } else if (matrix.dtype == DType::F16 || matrix.dtype == DType::BF16) {
    std::array<std::uint16_t, 256> part;  // aligned; the bytes of a file need not be
    for (std::size_t i = 0; i < out.size(); i += part.size()) {
      const std::size_t n = std::min(part.size(), out.size() - i);
      std::memcpy(part.data(), bytes.data() + 2 * i, 2 * n);
      (matrix.dtype == DType::F16 ? f16_to_f32 : bf16_to_f32)({part.data(), n}, out.subspan(i, n));
    }
  } else {
    throw Error("read_row: '{}': expected F32, F16, BF16 or a quantised type, found {}",
                matrix.name, dtype_name(matrix.dtype));
  }
}

}  // namespace stagecraft
