// Mistake: complex numbers made of neighbours.
#include "operators/rope.h"

#include <complex>

namespace stagecraft {

void rope(MatrixView<float> x, std::span<const float> inv_freq, std::size_t first_position) {
  for (std::size_t t = 0; t < x.rows(); ++t) {
    for (std::size_t pair = 0; 2 * pair < x.cols(); ++pair) {
      const float angle = static_cast<float>(first_position + t) * inv_freq[pair % inv_freq.size()];
      const std::complex<float> point(x(t, 2 * pair), x(t, 2 * pair + 1));
      const std::complex<float> turned = point * std::polar(1.0f, angle);
      x(t, 2 * pair) = turned.real();
      x(t, 2 * pair + 1) = turned.imag();
    }
  }
}

}  // namespace stagecraft
