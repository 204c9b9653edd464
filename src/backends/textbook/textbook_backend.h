#pragma once

#include <memory>

#include "backends/backend.h"
#include "backends/engine_options.h"
#include "checkpoint/checkpoint.h"
#include "model/description.h"

namespace stagecraft {

// Runs models with textbook operators, in f32. For Llama's family, the layers are those of the
// course (forward.cpp, attention_block.cpp, mlp.cpp), which may be a student's; for others, the
// plan is walked step by step. A probe sees what the functions of the course return: "embedding",
// and "attn_probs", "attn_residual" and "mlp_residual" of each layer. For that, each pass computes
// the layers twice. Description and checkpoint must outlive the backend. Throws Error if the
// checkpoint lacks a tensor that the model needs.
std::unique_ptr<Backend> make_textbook_backend(const ModelDescription& description,
                                               const Checkpoint& checkpoint, std::size_t n_threads);

// The same without the layers of the course, for any architecture. A probe sees the result of every
// named step of the plan.
std::unique_ptr<Backend> make_walking_backend(const Plan& plan, const Checkpoint& checkpoint,
                                              std::size_t n_threads);

// For a sequence with room for `context` positions.
SequenceBytes textbook_bytes(const Plan& plan, std::size_t context);

}  // namespace stagecraft
