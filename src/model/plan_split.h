#pragma once

#include "model/plan.h"

namespace stagecraft {

// A model in two parts that run one after the other, each on its own backend: the back is the last
// n layers and the head, the front is everything before them. Each part is a plan:
//
//   front  reads tokens     embedding, layers 0, 1, ...    its logits: the residual stream
//   back   reads the rows   ..., the last layers, head     its logits: those of the model
//
// The back stores keys and values for every token, so the front must compute a row for every token,
// not only for those to be scored. Buffers, weights, caches and states have the same ids in the
// model and in both parts, so steps are copied as they are. A part allocates no memory for objects
// that only the other part uses: no step of the part reads such a weight (weights_of_steps), and
// such a cache or state has size 0.
struct SplitPlan {
  Plan front, back;
};

// Whether the last n layers can be the back: only the residual stream may pass from the front to
// the back, and no layer of the back may read keys and values of the front. In Gemma 4, layers may
// share keys and values, so only some n are possible.
bool can_split(const Plan& plan, std::size_t n);

// Throws Error unless can_split(plan, n).
SplitPlan split_plan(const Plan& plan, std::size_t n);

}  // namespace stagecraft
