#pragma once

#include <memory>
#include <string_view>

#include "backends/backend.h"
#include "backends/engine_options.h"
#include "checkpoint/checkpoint.h"
#include "model/plan.h"

namespace stagecraft {

namespace cuda {
// The usual limit of tokens per pass. make_sequence() or a PromptRule can change it.
inline constexpr std::size_t kMostRows = 512;

// Throws Error if the GPU is older than the oldest one that the kernels are compiled for.
struct Capability;
void check_capability(Capability found);
// How many passes of this program repeated a recorded pass; for tests.
std::size_t n_repeated_passes();
}  // namespace cuda

// Runs plans on a GPU, or on the emulator of src/cuda_emulator. A program is linked with at most
// one of the two; most programs have neither (no_cuda.cpp).

// "cuda" or "cuda-emulator"; "" if this program has neither.
std::string_view cuda_backend_name();

// Throws Error if this program has no CUDA backend, if there is no GPU, if the GPU has too little
// memory, or if the plan has a step that the kernels cannot run. Plan and checkpoint must outlive
// the backend.
std::unique_ptr<Backend> make_cuda_backend(const Plan& plan, const Checkpoint& checkpoint,
                                           KvType kv_type);

}  // namespace stagecraft
