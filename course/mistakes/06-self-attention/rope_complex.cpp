// Right: rope by complex numbers, head by head.
#include "operators/rope.h"

#include <complex>

namespace stagecraft {

void rope(MatrixView<float> x, std::span<const float> inv_freq, std::size_t first_position) {
  const std::size_t half = inv_freq.size();
  for (std::size_t t = x.rows(); t-- > 0;) {
    for (std::size_t head = 0; head < x.cols(); head += 2 * half) {
      for (std::size_t i = 0; i < half; ++i) {
        const float angle = static_cast<float>(first_position + t) * inv_freq[i];
        const std::complex<float> turned =
            std::complex<float>(x(t, head + i), x(t, head + i + half)) * std::polar(1.0f, angle);
        x(t, head + i) = turned.real();
        x(t, head + i + half) = turned.imag();
      }
    }
  }
}

}  // namespace stagecraft
