#pragma once

#include <vector>

#include "model/plan.h"

namespace stagecraft {

// A model in two parts that run one after the other, each on a backend of its own: the last n
// layers with the head, and what comes before them. Each part is a plan:
//
//   front  reads tokens     embedding, layers 0, 1, ...    its logits: the residual stream
//   back   reads the rows   ..., the last layers, head     its logits: the model's
//
// Every token needs its row in the back, for its keys and values there: the front scores all.
// Buffers, weights, caches and states have the same ids in the model and in both parts, so steps
// are copied as they are. A part makes no memory for what only the other one uses: no step of the
// part reads such a weight (weights_of_steps), and such a cache or state has no size.
struct SplitPlan {
  Plan front, back;
};

// Whether the last n layers can be such a part: the residual stream is all that passes from the
// front to the back, and no layer of the back reads keys and values of the front. Layers of Gemma 4
// may do so, and then only some n can be.
bool can_split(const Plan& plan, std::size_t n);

// n: from 1 to the number of layers - 1, and can_split.
SplitPlan split_plan(const Plan& plan, std::size_t n);

}  // namespace stagecraft
