#pragma once

#include <cstddef>

#include "model/plan.h"

namespace stagecraft {

// The work of a step for one token. An estimate: it counts products with weights, attention and the
// delta rule. It leaves out norms, activations and RoPE, which are less than a hundredth of a
// model's work.
struct Work {
  double operations = 0.0;    // FLOP: a multiplication and an addition count as two
  double numbers_read = 0.0;  // elements of weights, keys and values
};

// kv_len: the number of positions that the token may attend to, its own included.
Work work_per_token(const Plan& plan, const StepKind& kind, std::size_t kv_len);

}  // namespace stagecraft
