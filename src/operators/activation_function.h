#pragma once

#include <cstddef>

namespace stagecraft {

// The activation functions that a plan can have. Their formulas are in silu.h, gelu_tanh.h,
// exact_gelu.h, relu.h and sigmoid.h. Tables of functions and names have this order. Identity stays
// the last.
enum class ActivationFunction { Silu, GeluTanh, Gelu, Relu, Sigmoid, Identity };
inline constexpr auto kActivationFunctions =
    static_cast<std::size_t>(ActivationFunction::Identity) + 1;

}  // namespace stagecraft
