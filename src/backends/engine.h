#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include "backends/backend.h"
#include "checkpoint/checkpoint.h"
#include "model/description.h"

namespace stagecraft {

// What computes a pass. Walker: one operator of the course per step of the plan, in f32. Textbook:
// the same, but the layers of the course where they can run the model. Cpu: packed weights, fused
// steps and the kernels of this processor. Cuda: a GPU, or its emulator, in programs that have it
// (cuda/cuda_backend.h).
enum class BackendKind { Walker, Textbook, Cpu, Cuda };

// How the Cpu and Cuda backends keep keys and values: as they are; rounded to f16 or bf16, half of
// the memory to hold and to read; or to bytes by blocks of 32, less than a third of it. Cuda has no
// BF16.
enum class KvType { F32, F16, BF16, Q8_0 };
constexpr std::array<std::string_view, 4> kKvTypeNames = {"f32", "f16", "bf16", "q8_0"};
constexpr std::string_view name_of(KvType type) {
  return kKvTypeNames[static_cast<std::size_t>(type)];
}

struct EngineOptions {
  BackendKind backend = BackendKind::Cpu;
  std::size_t n_threads = 0;  // 0: one per core
  // None: F32 in the layers of the course, else F16; but BF16 for large models on a processor that
  // multiplies bf16 faster than f32 (usual_kv_type).
  std::optional<KvType> kv_type = KvType::F32;
  // Of Cuda: only the last so many layers and the head are on the GPU, the others on the CPU. None:
  // all layers. 0: nothing is on the GPU, not even the head.
  std::optional<std::size_t> gpu_layers = {};
};

// A model, ready to run: its description, its weights on a backend, and the threads that all
// sequences share.
class Engine {
 public:
  // `model`: a folder with config.json and the weights, or a model file. Throws Error if a file is
  // missing or broken, if the model or an option is nothing that the backend can run, or if memory
  // or a GPU is missing.
  static Engine open(const ModelSource& model, const EngineOptions& options = {});

  const Plan& plan() const { return parts_->description.plan; }
  // Of Llama's family, for the layers of the course; of no other.
  const std::optional<Config>& config() const { return parts_->description.config; }
  const Checkpoint& checkpoint() const { return parts_->checkpoint; }
  // Nothing but gpu_layers is left open in these.
  const EngineOptions& options() const { return options_; }

  // See Backend. The engine must outlive its sequences.
  // Throws Error if the model has learned positions and fewer of them than `context`.
  std::unique_ptr<Sequence> make_sequence(std::size_t context, std::size_t max_rows = 0);
  std::vector<std::unique_ptr<Sequence>> make_sequences(std::size_t n, std::size_t n_more,
                                                        std::size_t context, std::size_t max_rows);
  void forward(std::span<const Input> inputs, MatrixView<float> logits) {
    backend_->forward(inputs, logits);
  }
  void forward_greedy(std::span<const Input> inputs, MatrixView<float> logits,
                      std::span<TokenId> likeliest) {
    backend_->forward_greedy(inputs, logits, likeliest);
  }
  std::size_t max_rows() const { return backend_->max_rows(); }
  std::size_t n_threads() const { return backend_->n_threads(); }
  void use_threads(std::size_t n) { backend_->use_threads(n); }
  void set_probe(Probe probe) { backend_->set_probe(std::move(probe)); }
  void score(MatrixView<const float> x, MatrixView<float> logits) { backend_->score(x, logits); }

 private:
  void check_context(std::size_t context) const;

  struct Parts {  // at one place in memory, because the backend looks at them
    ModelDescription description;
    Checkpoint checkpoint;
  };
  Engine(std::unique_ptr<const Parts> parts, const EngineOptions& options);

  std::unique_ptr<const Parts> parts_;
  EngineOptions options_;
  std::unique_ptr<Backend> backend_;
};

// Sees the intermediate results of an engine's passes as long as it exists; see Backend::set_probe.
class ProbeScope {
 public:
  ProbeScope(Engine& engine, Probe probe) : engine_(engine) { engine.set_probe(std::move(probe)); }
  ~ProbeScope() { engine_.set_probe({}); }
  ProbeScope(const ProbeScope&) = delete;
  ProbeScope& operator=(const ProbeScope&) = delete;

 private:
  Engine& engine_;
};

// The memory of the host in bytes that a sequence comes to use: without what is in a GPU's memory.
// Pages that are never reached cost nothing.
struct SequenceBytes {
  double cache;      // keys and values
  double workspace;  // of a pass; sequences of one engine share it
};
SequenceBytes sequence_bytes(const Plan& plan, const EngineOptions& options, std::size_t context);

}  // namespace stagecraft
