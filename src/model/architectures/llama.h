#pragma once

#include "model/config.h"
#include "model/plan.h"

namespace stagecraft {

// The plan of Llama, Mistral, Qwen2 and Qwen3: the family that the course's own layers compute too
// (forward.cpp, attention_block.cpp, mlp.cpp). A test holds the two equal.
Plan llama_plan(const Config& config,
                ActivateStep::Function function = ActivateStep::Function::Silu);

}  // namespace stagecraft
