#pragma once

#include "backends/engine_options.h"
#include "checkpoint/checkpoint.h"
#include "model/plan.h"
#include "operators/kernels/kernels.h"

namespace stagecraft {

// The work of the linear layers per token, with weights in the panels of the CPU backend.
struct TokenCost {
  double operations = 0.0;  // per prompt token: without the head and those parts of the last layer
                            // that only the last token of the prompt needs
  double bytes = 0.0;       // weight bytes that are read to generate one token
  ActivationType rows = ActivationType::F32;  // activation type of most of the weights
};

// Reads the types and shapes of the tensors, not their numbers. Throws Error if find_weights or
// fuse does.
TokenCost token_cost(const Plan& plan, const Checkpoint& checkpoint);

// The bytes of keys and values that a token reads whose text has `positions` positions, itself
// included. A layer with a window reads no more positions than that.
double attended_bytes(const Plan& plan, KvType type, std::size_t positions);

}  // namespace stagecraft
