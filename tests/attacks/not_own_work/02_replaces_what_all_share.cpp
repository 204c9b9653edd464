// Attack: replaces an inline function of ours, of which many objects have a copy.
// Stage: 2
// Refused for: we define it
// Would earn: 0
#include <cmath>

#include "operators/rms_norm.h"

// The worker throws Errors, and so has a weak copy of their destructor. This one is not weak, so
// the linker would take it in the whole program.
void gone() asm("_ZN10stagecraft5ErrorD1Ev");
void gone() {}

namespace stagecraft {

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y) {
  for (std::size_t r = 0; r < x.rows(); ++r) {
    double sum = 0;
    for (std::size_t i = 0; i < x.cols(); ++i) sum += x(r, i) * x(r, i);
    const double k = 1.0 / std::sqrt(sum / x.cols() + eps);
    for (std::size_t i = 0; i < x.cols(); ++i) y(r, i) = x(r, i) * k * weight[i];
  }
}

}  // namespace stagecraft
