#pragma once

#include <memory>

#include "backends/engine.h"
#include "operators/kernels/kernels.h"

namespace stagecraft {

// Runs plans on this processor: weights packed for its kernels, steps fused, threads side by side.
// Plan and checkpoint must outlive the backend. table: another instruction set than the best one,
// for tests. Throws Error where the checkpoint does not hold what the plan asks for, or where the
// plan has a step that this backend does not run.
std::unique_ptr<Backend> make_cpu_backend(const Plan& plan, const Checkpoint& checkpoint,
                                          const EngineOptions& options,
                                          const Kernels& table = kernels());

// How keys and values of a model are kept where nobody asks for another type: BF16 if the model is
// large and the kernels of this processor round to bf16, else F16.
KvType usual_kv_type(const Checkpoint& checkpoint);

SequenceBytes cpu_bytes(const Plan& plan, KvType type, std::size_t context);

}  // namespace stagecraft
