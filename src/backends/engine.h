#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include "backends/backend.h"
#include "checkpoint/checkpoint.h"
#include "model/description.h"

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
  // and the processor multiplies bf16 faster than f32 (usual_kv_type).
  std::optional<KvType> kv_type = {};
  // For Cuda: only the last gpu_layers layers and the head are on the GPU, the others on the CPU.
  // Empty: all layers. 0: nothing is on the GPU, not even the head.
  std::optional<std::size_t> gpu_layers = {};
};

// A model, ready to run: its description, its weights on a backend, and the threads that all
// sequences share.
class Engine {
 public:
  // `model`: a folder with config.json and the weights, or a model file. Throws Error if a file is
  // missing or broken, if the backend cannot run the model or an option, or if memory or a GPU is
  // missing.
  static Engine open(const ModelSource& model, const EngineOptions& options = {});

  const Plan& plan() const { return parts_->description.plan; }
  // For the layers of the course. Empty if the model is not of Llama's family.
  const std::optional<Config>& config() const { return parts_->description.config; }
  const Checkpoint& checkpoint() const { return parts_->checkpoint; }
  // The options with their defaults filled in; only gpu_layers may still be empty.
  const EngineOptions& options() const { return options_; }

  // See Backend. The engine must outlive its sequences. Throws Error if the model has learned
  // positions, but fewer than `context`.
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

  struct Parts {  // at a fixed address, because the backend refers to them
    ModelDescription description;
    Checkpoint checkpoint;
  };
  Engine(std::unique_ptr<const Parts> parts, const EngineOptions& options);

  std::unique_ptr<const Parts> parts_;
  EngineOptions options_;
  std::unique_ptr<Backend> backend_;
};

// Passes the intermediate results of an engine to `probe` as long as it exists; see
// Backend::set_probe.
class ProbeScope {
 public:
  ProbeScope(Engine& engine, Probe probe) : engine_(engine) { engine.set_probe(std::move(probe)); }
  ~ProbeScope() { engine_.set_probe({}); }
  ProbeScope(const ProbeScope&) = delete;
  ProbeScope& operator=(const ProbeScope&) = delete;

 private:
  Engine& engine_;
};

// The most memory of the host that a sequence uses, in bytes; the memory of a GPU is not counted.
// Pages that the text never reaches cost nothing.
struct SequenceBytes {
  double cache;      // keys and values
  double workspace;  // of a pass; sequences of one engine share it
};
SequenceBytes sequence_bytes(const Plan& plan, const EngineOptions& options, std::size_t context);

}  // namespace stagecraft
