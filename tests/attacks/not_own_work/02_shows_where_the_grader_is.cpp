// Attack: looks for the folders of the grading machine in a compiler's message about a header.
// Stage: 2
// Refused for: src/tensor/matrix.h
// Would earn: 0
#include "operators/rms_norm.h"

namespace stagecraft {

void rms_norm(MatrixView<const float>, std::span<const float>, float, MatrixView<float>) {
  [[maybe_unused]] Matrix<std::span<float>*&> impossible;
  static_assert(__builtin_strlen(__BASE_FILE__) == 0, __FILE__);
}

}  // namespace stagecraft
