#pragma once

#include "model/config.h"
#include "model/plan.h"

namespace stagecraft {

// The plan of Llama, Mistral, Qwen2 and Qwen3: the family that the course's own layers also compute
// (forward.cpp, attention_block.cpp, mlp.cpp). A test checks that both give the same results.
Plan llama_plan(const Config& config,
                ActivateStep::Function function = ActivateStep::Function::Silu);

}  // namespace stagecraft
