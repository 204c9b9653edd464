#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace stagecraft {

// The backend that runs a model. Walker: one operator of the course per step of the plan, in f32.
// Textbook: the layers of the course if they can run the model, else the same as Walker. Cpu:
// packed weights, fused steps and the kernels of this processor. Cuda: a GPU or its emulator, in
// programs that are linked with one (cuda/cuda_backend.h).
enum class BackendKind { Walker, Textbook, Cpu, Cuda };

// How the Cpu and Cuda backends store keys and values: unchanged; rounded to f16 or bf16, which
// needs half of the memory and of the bandwidth; or rounded to bytes in blocks of 32, which needs
// less than a third. Cuda has no BF16.
enum class KvType { F32, F16, BF16, Q8_0 };
constexpr std::array<std::string_view, 4> kKvTypeNames = {"f32", "f16", "bf16", "q8_0"};
constexpr std::string_view name_of(KvType type) {
  return kKvTypeNames[static_cast<std::size_t>(type)];
}

struct EngineOptions {
  BackendKind backend = BackendKind::Cpu;
  std::size_t n_threads = 0;  // 0: one per core
  // Empty: F32 for Walker and Textbook, F16 for Cuda. For Cpu F16, or BF16 if the model is large
  // and the processor multiplies bf16 faster than f32 (default_kv_type).
  std::optional<KvType> kv_type = {};
  // Only for Cuda: the last gpu_layers layers and the head are on the GPU, the others on the CPU.
  // Empty: all layers. 0: nothing is on the GPU, not even the head.
  std::optional<std::size_t> gpu_layers = {};
};

// The most memory that a sequence uses, in bytes, without what threads need for themselves (a few
// MB each). Pages that the text never reaches cost nothing.
struct SequenceBytes {
  double cache;      // keys, values and states
  double workspace;  // of a pass; sequences of one engine share it
};

}  // namespace stagecraft
