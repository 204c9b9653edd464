#pragma once

#include <cstddef>

#include "base/config_fields.h"

namespace stagecraft {

inline constexpr std::size_t kMaxLayers = 4096;
// Bounds of "rms_norm_eps": f32 can represent them.
inline constexpr double kMinEps = 1e-30;
inline constexpr double kMaxEps = 1.0;

}  // namespace stagecraft
