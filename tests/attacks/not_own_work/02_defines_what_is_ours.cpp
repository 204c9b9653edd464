// Attack: defines a function of ours that other code calls.
// Stage: 2
// Refused for: check_size
// Would earn: 0
#include "operators/check.h"
#include "operators/rms_norm.h"

namespace stagecraft {

void check_size(std::string_view, std::string_view, std::size_t, std::size_t) {}

void rms_norm(MatrixView<const float>, std::span<const float>, float, MatrixView<float>) {}

}  // namespace stagecraft
