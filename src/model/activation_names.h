#pragma once

#include <iterator>

#include "operators/activation_function.h"

namespace stagecraft {

struct ActivationNames {
  const char* function;    // in the text of a plan
  const char* step;        // the name of the step f(x)
  const char* gated_step;  // the name of the step f(gate) * up (Shazeer 2020)
};

inline constexpr ActivationNames kActivationNames[] = {
    {"silu", "silu", "swiglu"},        //
    {"gelu_tanh", "gelu", "geglu"},    //
    {"gelu", "gelu", "geglu"},         //
    {"relu", "relu", "reglu"},         //
    {"sigmoid", "sigmoid", "gated"},   //
    {"identity", "product", "gated"},  //
};
static_assert(std::size(kActivationNames) == kActivationFunctions);

constexpr const ActivationNames& names_of(ActivationFunction function) {
  return kActivationNames[static_cast<std::size_t>(function)];
}

}  // namespace stagecraft
