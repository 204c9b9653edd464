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

SequenceBytes cpu_bytes(const Plan& plan, KvType type, std::size_t context);

}  // namespace stagecraft
