#pragma once

#include <cstddef>

#include "model/plan.h"

namespace stagecraft {

// What a step does for one token. An estimate: products with weights, attention and the delta rule
// count; norms, activations and RoPE, which are less than a hundredth of a model's work, do not.
struct Work {
  double operations = 0.0;    // FLOP: a product and the sum that it goes into are two
  double numbers_read = 0.0;  // of weights, keys and values
};

// kv_len: the positions that the token may attend to, with its own.
Work work_per_token(const Plan& plan, const StepKind& kind, std::size_t kv_len);

}  // namespace stagecraft
