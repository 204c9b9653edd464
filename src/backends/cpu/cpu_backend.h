#pragma once

#include <memory>

#include "backends/backend.h"
#include "backends/engine_options.h"
#include "checkpoint/checkpoint.h"
#include "model/plan.h"
#include "operators/kernels/kernels.h"

namespace stagecraft {

// Runs plans on this processor with packed weights, fused steps and several threads. Plan and
// checkpoint must outlive the backend. table: the kernels to use; tests pass other instruction sets
// than the best one. Throws Error if the checkpoint lacks a tensor that the plan needs, or if this
// backend cannot run a step of the plan.
std::unique_ptr<Backend> make_cpu_backend(const Plan& plan, const Checkpoint& checkpoint,
                                          const EngineOptions& options,
                                          const Kernels& table = kernels());

// The default type of keys and values: BF16 if the model is large and the kernels of this processor
// round to bf16, else F16.
KvType usual_kv_type(const Checkpoint& checkpoint);

SequenceBytes cpu_bytes(const Plan& plan, KvType type, std::size_t context);

}  // namespace stagecraft
