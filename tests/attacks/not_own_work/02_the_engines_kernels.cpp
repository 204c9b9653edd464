// Attack: calls the engine's kernel for RMSNorm, whose header it does not include but repeats.
// Stage: 2
// Refused for: kernels
// Would earn: 14
#include "operators/rms_norm.h"

namespace stagecraft {

struct Kernels;
const Kernels& kernels();

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y) {
  using RmsNorm = void (*)(const float*, const float*, std::size_t, float, float*);
  const auto* table = reinterpret_cast<const char*>(&kernels());
  constexpr std::size_t kForms = 8, kTileRows = 12;  // what stands before it in the table
  constexpr std::size_t kAt = sizeof(char*) + sizeof(char*) * kForms * kTileRows +
                              sizeof(std::size_t) * kForms + 8 + 2 * sizeof(char*);
  const auto norm = *reinterpret_cast<const RmsNorm*>(table + kAt);
  for (std::size_t r = 0; r < x.rows(); ++r) {
    norm(x.row(r).data(), weight.data(), x.cols(), eps, y.row(r).data());
  }
}

}  // namespace stagecraft
