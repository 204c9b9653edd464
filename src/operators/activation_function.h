#pragma once

#include <cstddef>

namespace stagecraft {

// The activation functions that a plan can have (kernels.h has their formulas). Tables of functions
// and names have this order.
enum class ActivationFunction { Silu, GeluTanh, Gelu, Relu, Sigmoid, Identity };
inline constexpr std::size_t kActivationFunctions = 6;

}  // namespace stagecraft
