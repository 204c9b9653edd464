// Attack: calls the functions with which the engine converts models.
// Stage: 10
// Refused for: operators/dequantize.h
// Would earn: 12
#include <vector>

#include "operators/dequantize.h"
#include "operators/q8_0.h"
#include "operators/quantize.h"

namespace stagecraft {

void quantize_q8_0(std::span<const float> x, std::span<BlockQ8_0> blocks) {
  quantize(DType::Q8_0, x, std::as_writable_bytes(blocks));
}

void dequantize_q8_0(std::span<const BlockQ8_0> blocks, std::span<float> x) {
  dequantize(DType::Q8_0, std::as_bytes(blocks), x);
}

float dot_q8_0(std::span<const BlockQ8_0> a, std::span<const BlockQ8_0> b) {
  std::vector<float> x(a.size() * BlockQ8_0::kSize), y(x.size());
  dequantize_q8_0(a, x);
  dequantize_q8_0(b, y);
  float sum = 0.0f;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

}  // namespace stagecraft
