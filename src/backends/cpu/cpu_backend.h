#pragma once

#include <memory>

#include "backends/backend.h"
#include "backends/engine_options.h"
#include "checkpoint/checkpoint.h"
#include "model/plan.h"
#include "operators/kernels/kernels.h"

namespace stagecraft {

// Runs plans on this processor with packed weights, fused steps and several threads. Plan and
// checkpoint must outlive the backend. Throws Error if the checkpoint lacks a tensor that the plan
// needs, if this backend cannot run a step of the plan, or if the threads cannot be started. Throws
// std::bad_alloc if the packed weights do not fit into memory.
std::unique_ptr<Backend> make_cpu_backend(const Plan& plan, const Checkpoint& checkpoint,
                                          KvType kv_type, std::size_t n_threads);

// The default type of keys and values: BF16 if the model is large and the kernels of this processor
// round to bf16, else F16.
KvType default_kv_type(const Checkpoint& checkpoint);

// How this backend stores keys and values of a type.
WeightLayout kv_layout(KvType type);

// For a sequence with room for `context` positions.
SequenceBytes cpu_bytes(const Plan& plan, KvType type, std::size_t context);

}  // namespace stagecraft
