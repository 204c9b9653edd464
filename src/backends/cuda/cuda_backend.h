#pragma once

#include <memory>
#include <string_view>

#include "backends/engine.h"

namespace stagecraft {

namespace cuda {
// A prompt goes through the model in pieces of this many tokens.
inline constexpr std::size_t kMostRows = 512;

// Throws Error if the kernels are not compiled for a GPU this old.
struct Capability;
void check_capability(Capability found);
// How many passes of this program were repetitions of a recorded one; for tests.
std::size_t n_repeated_passes();

enum class CacheType;
CacheType cache_type(KvType type);
}  // namespace cuda

// Runs plans on a GPU, or on the emulator of src/cuda_emulator. A program has at most one of the
// two, by what it is linked with; most have neither (no_cuda.cpp).

// "cuda" or "cuda-emulator"; "" where this program has neither.
std::string_view cuda_backend_name();

// Throws Error if there is none, or no GPU, or too little memory on it, or if the plan has a step
// that the kernels cannot run. Plan and checkpoint must outlive the backend.
std::unique_ptr<Backend> make_cuda_backend(const Plan& plan, const Checkpoint& checkpoint,
                                           const EngineOptions& options);

// In the GPU's memory.
SequenceBytes cuda_bytes(const Plan& plan, KvType type, std::size_t context);

}  // namespace stagecraft
