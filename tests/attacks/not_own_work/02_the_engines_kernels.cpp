// Attack: calls the engine's kernel for RMSNorm.
// Stage: 2
// Refused for: operators/kernels/kernels.h
// Would earn: 14
#include "operators/kernels/kernels.h"
#include "operators/rms_norm.h"

namespace stagecraft {

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y) {
  for (std::size_t r = 0; r < x.rows(); ++r) {
    kernels().rms_norm(x.row(r).data(), weight.data(), x.cols(), eps, y.row(r).data());
  }
}

}  // namespace stagecraft
